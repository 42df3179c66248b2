"""Copies of texts: which words change, to what, and what stays."""

import re

import numpy as np
import pytest

import keras_bert
from keras_bert.data import AnnotatedTexts, TaggedSentences, augment, label_first, split_words
from keras_bert.data.relations import RelationExamples, Span

WORDS = "the cat sat on mat dog ran home and slept it was late fine dull book tale good bad".split()
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, ".", ",", "'", ":", "s"]
TOKENS += ["har", "##bo", "##ur"]
TEXTS = ["The cat sat on the mat.", "A harbour, the dog's HOME was late", "."]


@pytest.fixture(scope="module")
def masked_lm():
    backbone = keras_bert.BertBackbone(len(TOKENS), 1, 2, 8, 16, max_sequence_length=24)
    tokenizer = keras_bert.BertTokenizer(TOKENS, lowercase=True)
    preprocessor = keras_bert.BertMaskedLMPreprocessor(tokenizer, sequence_length=24)
    return keras_bert.BertMaskedLM(backbone, preprocessor)


@pytest.mark.thorough
def test_words_are_replaced_by_the_models_candidates(masked_lm):
    found = augment(TEXTS, masked_lm, share=0.01, n=3, top_k=2, seed=1)
    assert found.rows.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert found.changed.tolist() == [1, 1, 1, 1, 1, 1, 0, 0, 0]
    assert found.x[6:] == [".", ".", "."]  # without a word
    assert len({*found.x[:3]}) > 1
    for copy, row in zip(found.x[:6], found.rows, strict=False):
        old, new = (re.findall(r"\w+|[^\w\s]", text) for text in (TEXTS[row], copy))
        assert len(old) == len(new)
        ((before, after),) = [pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]]
        assert len(before) > 1 and before not in ("dog", "s")  # letters beside an apostrophe stay
        assert (after.isupper(), after[0].isupper()) == (before.isupper(), before[0].isupper())
        # Only one word differs, so it is where the copy and the text part.
        start = next(i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b)
        at = [m.span() for m in re.finditer(r"\w+|[^\w\s]", TEXTS[row])][start]
        masked = TEXTS[row][: at[0]] + "[MASK]" + TEXTS[row][at[1] :]
        (best,) = masked_lm.fill(masked, top_k=3, targets=[*WORDS, "har"])
        likely = [one.token for one in best if one.token != before.lower()][:2]
        assert after.lower() in likely


def test_copies_are_a_function_of_the_seed(masked_lm):
    first, same, other = (augment(TEXTS, masked_lm, 0.5, 2, seed=seed).x for seed in (3, 3, 4))
    assert first == same != other
    assert augment([], masked_lm).x == []


def test_what_a_task_marks_stays(masked_lm):
    text = "The dog ran home and it was late"
    marked = AnnotatedTexts([text], [[(4, 7, "ANIMAL"), (28, 32, "TIME")]])
    found = augment(marked, masked_lm, share=1, n=5)
    assert (found.changed == 6).all()
    for copy, spans in zip(found.x.texts, found.x.entities, strict=True):
        assert [copy[start:end] for start, end, _ in spans] == ["dog", "late"]
        assert [label for *_, label in spans] == ["ANIMAL", "TIME"]
    tags = [["O", "B-A", *["O"] * 5, "B-T"], []]
    tagged = TaggedSentences([text.split(), []], tags, [0, 0], [7, 9])
    found = augment(tagged, masked_lm, share=1, n=2).x
    assert [(w[1], w[7], len(w)) for w in found.words[:2]] == [("dog", "late", 8)] * 2
    assert found.words[2:] == [[], []]
    assert found.tags == [tags[0], tags[0], [], []] and found.lines == [7, 7, 9, 9]
    relation = RelationExamples(
        [1], [text], [(Span(4, 7), Span(28, 32))], ["unused"], ["Other"], [""], [3]
    )
    found = augment(relation, masked_lm, share=1, n=1).x
    assert re.fullmatch(r"\w+ <e1>dog</e1> .* <e2>late</e2>", found.marked_texts[0])
    assert found.labels == ["Other"]


def test_pairs_and_labels(masked_lm):
    pairs = (["The cat sat", "It was late"], ["A dog ran", "It was fine"])
    assert label_first(pairs, ["good", "bad"])[1] == "bad: It was late It was fine"
    plain = augment(pairs, masked_lm, share=1, n=2)
    told = augment(pairs, masked_lm, share=1, n=2, labels=["good", "bad"])
    for found in (plain, told):
        assert [len(column) for column in found.x] == [4, 4]
        assert all(len(text.split()) == 3 for column in found.x for text in column)
        assert not any(":" in text for text in found.x[0])
    assert plain.x != told.x  # the model has read the label


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": ["a [MASK]"]}, r"texts\[0\] holds \[MASK\]"),
        ({"labels": ["good"]}, "1 names, expected 3"),
        ({"share": 1.5}, "share=1.5"),
        ({"n": 0}, "n=0"),
        ({"top_k": 20}, "the vocabulary's 20 words"),
    ],
)
def test_errors(masked_lm, arguments, message):
    with pytest.raises(ValueError, match=message):
        augment(**({"texts": TEXTS, "masked_lm": masked_lm} | arguments))


def test_labels_are_names(masked_lm):
    with pytest.raises(TypeError, match=r"labels\[1\]=1"):
        label_first(TEXTS, ["good", 1, "bad"])


def test_split_words(masked_lm):
    tokenizer = masked_lm.preprocessor.tokenizer
    texts = ["Harbour cat harbour", "HARBOUR hars, zebra", "hars"]
    assert split_words(texts, tokenizer, min_count=2) == ["harbour"]
    assert split_words(iter(texts * 2), tokenizer, most=1, min_count=1) == ["harbour"]
    assert split_words(texts, tokenizer, min_count=4) == []
    with pytest.raises(TypeError, match="one string"):
        split_words("harbour", tokenizer)


def test_changed_counts_round_the_share(masked_lm):
    found = augment([" ".join(["cat"] * 10)], masked_lm, share=0.34, n=2)
    assert found.changed.tolist() == [3, 3]
    assert all(np.sum([word != "cat" for word in text.split()]) == 3 for text in found.x)
