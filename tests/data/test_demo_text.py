import re

import pytest

from keras_bert.data.demo_text import (
    ADJECTIVES,
    DECIDERS,
    LABEL_NAMES,
    TOPICS,
    VERBS,
    generate,
)

TOKEN = r"\w+|[^\w\s]"


def test_same_seed_same_sentences():
    assert generate(50, seed=3) == generate(50, seed=3)
    assert generate(50, seed=3) == tuple(column and column[:50] for column in generate(90, seed=3))
    assert generate(50, seed=3) != generate(50, seed=4)


def test_first_sentences_are_these():
    """Held here so that a change of the grammar, which changes every demo, is meant."""
    examples = generate(5, seed=0)
    assert list(zip(examples.texts, examples.labels, strict=True)) == [
        ("I found the dialogue very shallow.", 0),
        ("This time, I found the charger really lousy.", 0),
        ("As usual, I found the bread greasy, yet I enjoyed the waiter.", 1),
        ("The cake was far from lousy.", 1),
        ("Honestly, I did not dislike the manual.", 1),
    ]


def test_splits_share_no_sentence():
    train, validation = generate(4000, seed=0), generate(1000, seed=0, split="validation")
    assert len(set(train.texts)) == 4000 and len(set(validation.texts)) == 1000
    assert not set(train.texts) & set(validation.texts)
    for examples in (train, validation):
        assert 0.46 < sum(examples.labels) / len(examples.labels) < 0.54
    assert LABEL_NAMES == ("negative", "positive")


def verdict(text):
    """Reads a sentence as a person would: the last clause decides, a negation turns it round."""
    last = re.findall(TOKEN, re.split(r", | and ", text.lower())[-1])
    lists = [ADJECTIVES, DECIDERS] + [group[1:] for topic in TOPICS.values() for group in topic[1:]]
    negative, positive = (
        {word for pair in lists for word in pair[label]}
        | {form for forms in VERBS[label] for form in forms}
        for label in (0, 1)
    )
    assert not negative & positive
    assert len(set(last) & negative) + len(set(last) & positive) == 1, text
    negated = bool(set(last) & {"not", "never", "hardly", "far", "nobody"})
    return int(bool(set(last) & positive) != negated)


def test_labels_are_what_the_order_of_words_says():
    for split in ("train", "validation"):
        examples = generate(3000, seed=5, split=split)
        assert [verdict(text) for text in examples.texts] == examples.labels


def test_the_same_words_in_another_order_may_say_the_opposite():
    bad = "The cast was not dull, but the plot was bad."
    good = "The cast was dull, but the plot was not bad."
    assert sorted(re.findall(TOKEN, bad)) == sorted(re.findall(TOKEN, good))
    assert (verdict(bad), verdict(good)) == (0, 1)


def test_words_alone_do_not_settle_it():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    from sklearn.linear_model import LogisticRegression

    train, validation = generate(2000, seed=0), generate(1000, seed=1, split="validation")
    counts = text.CountVectorizer(token_pattern=TOKEN)
    model = LogisticRegression(max_iter=1000).fit(counts.fit_transform(train.texts), train.labels)
    accuracy = model.score(counts.transform(validation.texts), validation.labels)
    assert 0.75 < accuracy < 0.85  # measured 0.79


def test_errors():
    with pytest.raises(ValueError, match="split='dev': expected one of train, validation"):
        generate(5, split="dev")
    with pytest.raises(ValueError, match="count=0: expected a whole number, 1 or more"):
        generate(0)
