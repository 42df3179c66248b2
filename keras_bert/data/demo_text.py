"""Labelled English made by a small grammar: reviews whose verdict hangs on word order.

For demos and tests that must learn something real without a download. A sentence is one of

- a clause: "The soup was really tasty.", "I found the plot dull."
- a negated clause, which says the opposite of its word: "I did not enjoy the bread."
- two clauses that agree: "The screen was sharp and the motor was not noisy."
- two clauses that disagree, where the last decides: "Although the lobby was clean, I hated the
  bed.", "The fish was not bland, but the waiter ruined the dinner."

The words alone do not settle it: "the cast was not dull, but the plot was bad" is negative, "the
cast was dull, but the plot was not bad" is positive, and both hold the same words. A logistic
regression on the words of 2,000 sentences gets about four in five right
(`tests/data/test_demo_text.py` holds it there); reading the order gives all of them.
"""

import random
import re
import zlib

from keras_bert.arguments import check_choice, check_count
from keras_bert.data.tables import Examples

LABEL_NAMES = ("negative", "positive")

# topic: the whole that is reviewed, then groups of (its parts, negative words, positive words)
TOPICS = {
    "restaurant": (
        "meal dinner lunch evening".split(),
        (
            "soup bread steak dessert pasta salad fish rice pie cake".split(),
            "stale bland greasy burnt dry salty".split(),
            "tasty fresh delicious tender juicy crisp".split(),
        ),
        (
            "waiter chef host staff cook".split(),
            "rude careless slow clumsy lazy".split(),
            "friendly polite helpful attentive quick".split(),
        ),
    ),
    "film": (
        "film movie show drama".split(),
        (
            "plot script story ending dialogue opening music".split(),
            "dull predictable silly tedious shallow".split(),
            "clever gripping original moving thrilling".split(),
        ),
        (
            "cast hero villain director lead".split(),
            "wooden lifeless forgettable annoying weak".split(),
            "convincing funny charming memorable gifted".split(),
        ),
    ),
    "product": (
        "phone laptop camera kettle".split(),
        (
            "battery motor charger cable button handle case".split(),
            "flimsy faulty useless noisy fragile".split(),
            "reliable sturdy solid quiet durable".split(),
        ),
        (
            "screen manual menu keyboard display".split(),
            "confusing blurry cramped ugly awkward".split(),
            "clear sharp handy elegant intuitive".split(),
        ),
    ),
    "hotel": (
        "stay trip weekend holiday".split(),
        (
            "room bed bathroom carpet lobby pool balcony".split(),
            "dirty damp shabby gloomy uncomfortable".split(),
            "clean cosy bright spacious comfortable".split(),
        ),
        (
            "manager cleaner porter guide driver".split(),
            "unhelpful grumpy impatient arrogant late".split(),
            "cheerful patient generous kind welcoming".split(),
        ),
    ),
}
ADJECTIVES = (
    "bad poor awful dreadful terrible horrible disappointing mediocre unpleasant lousy".split(),
    "good great excellent lovely superb wonderful brilliant fine pleasant impressive".split(),
)
VERBS = (  # past, and the form after "did not"
    (("hated", "hate"), ("disliked", "dislike"), ("regretted", "regret"), ("loathed", "loathe")),
    (("loved", "love"), ("enjoyed", "enjoy"), ("liked", "like"), ("admired", "admire")),
)
DECIDERS = ("ruined spoiled wrecked".split(), "saved rescued redeemed".split())
DEGREES = ("", "", "very ", "really ", "quite ", "rather ", "truly ", "so ")
OPENINGS = ("", "", "", "", "honestly, ", "to be fair, ", "in short, ", "this time, ", "as usual, ")
KINDS = (("plain", 0.50), ("negated", 0.12), ("agreeing", 0.16), ("contrast", 0.22))
SPLITS = ("train", "validation")


def generate(count: int, seed: int = 0, split: str = "train") -> Examples:
    """Draws labelled sentences, all different.

    The two splits share no sentence, whatever the seeds: a checksum of the sentence decides which
    one it belongs to.

    Args:
        count: how many sentences.
        seed: the same seed gives the same sentences.
        split: "train" or "validation".

    Returns:
        `Examples` with labels 0 (negative) and 1 (positive), as in `LABEL_NAMES`.

    Raises:
        ValueError: for an unknown split, or a count that is not positive or is beyond what the
            grammar gives without repeats.
    """
    check_choice("split", split, SPLITS)
    check_count("count", count)
    rng = random.Random(seed)
    sentences: dict[str, int] = {}
    draws = 0
    while len(sentences) < count:
        if draws == 100 * count:
            raise ValueError(f"Only {len(sentences)} of {count} different sentences were found")
        draws += 1
        label = rng.randrange(2)
        sentence = _sentence(rng, label)
        if (zlib.crc32(sentence.encode()) % 5 == 0) == (split == "validation"):
            sentences.setdefault(sentence, label)
    return Examples(list(sentences), list(sentences.values()))


def _sentence(rng: random.Random, label: int) -> str:
    topic = rng.choice(list(TOPICS.values()))
    (kind,) = rng.choices([name for name, _ in KINDS], [weight for _, weight in KINDS])
    if kind in ("plain", "negated"):
        text = _clause(rng, topic, label, negated=kind == "negated")
    elif kind == "agreeing":
        first, second = (_clause(rng, topic, label, rng.random() < 0.2) for _ in range(2))
        text = f"{first} and {second}"
    else:
        first = _clause(rng, topic, 1 - label, rng.random() < 0.3)
        if rng.random() < 0.2:
            whole, part = rng.choice(topic[0]), rng.choice(rng.choice(topic[1:])[0])
            second = f"the {part} {rng.choice(DECIDERS[label])} the {whole}"
        else:
            second = _clause(rng, topic, label, rng.random() < 0.3)
        text = rng.choice(("{}, but {}", "{}, yet {}", "although {}, {}", "even though {}, {}"))
        text = text.format(first, second)
    text = rng.choice(OPENINGS) + text + "."
    return re.sub(r"\bi\b", "I", text[0].upper() + text[1:])


def _clause(rng: random.Random, topic: tuple, label: int, negated: bool) -> str:
    """One clause that says `label`; if negated, with a word of the other label under a negation."""
    polarity = 1 - label if negated else label
    group = rng.choice(topic[1:])
    noun = "the " + rng.choice(group[0])
    if rng.random() < 0.3:
        past, base = rng.choice(VERBS[polarity])
        if not negated:
            return f"i {rng.choice(('', 'really ', 'truly '))}{past} {noun}"
        return rng.choice((f"i did not {base} {noun}", f"nobody could {base} {noun}"))
    adjective = rng.choice(ADJECTIVES[polarity] + group[1 + polarity])
    if not negated:
        verdict = rng.choice(DEGREES) + adjective
        return rng.choice((f"{noun} was {verdict}", f"i found {noun} {verdict}"))
    form = rng.choice(
        (
            "{} was not {}{}",
            "{} was never {}{}",
            "{} was hardly {}{}",
            "{} was far from {}{}",
            "i would not call {} {}{}",
        )
    )
    return form.format(noun, rng.choice(("", "", "very ")) if "not" in form else "", adjective)
