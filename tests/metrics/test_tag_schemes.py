import gzip
import itertools

import pytest

from keras_bert.metrics.tag_schemes import Entity, entities, to_iob1, to_iob2, to_iobes

# Two entities of one type side by side, of two types side by side, and of one token.
IOB1 = "I-PER I-PER B-PER O I-LOC I-ORG I-ORG I-ORG O I-LOC".split()
IOB2 = "B-PER I-PER B-PER O B-LOC B-ORG I-ORG I-ORG O B-LOC".split()
IOBES = "B-PER E-PER S-PER O S-LOC B-ORG I-ORG E-ORG O S-LOC".split()
ALL = {"IOB1": IOB1, "IOB2": IOB2, "IOBES": IOBES}
FOUND = [
    Entity("PER", 0, 2),
    Entity("PER", 2, 3),
    Entity("LOC", 4, 5),
    Entity("ORG", 5, 8),
    Entity("LOC", 9, 10),
]


@pytest.mark.parametrize("scheme", ALL)
def test_every_scheme_into_every_other(scheme):
    tags = ALL[scheme]
    assert entities(tags, scheme) == FOUND
    assert to_iob1([tags, []], scheme) == [IOB1, []]
    assert to_iob2([tags], scheme) == [IOB2]
    assert to_iobes([tags], scheme) == [IOBES]


def test_conll_2003_is_iob1():
    tags = "I-PER I-PER O I-LOC B-LOC".split()
    assert to_iob2([tags], "IOB1") == ["B-PER I-PER O B-LOC B-LOC".split()]
    assert len(entities(tags, "IOB1")) == 3
    with pytest.raises(ValueError, match="Sentence 0, position 0: I-PER at the beginning"):
        to_iob2([tags], "IOB2")


def test_all_orders_of_tags_are_read_alike_or_refused():
    """Up to 4 tokens: what a scheme allows survives the way through the others."""
    for scheme, letters in (("IOB2", "BI"), ("IOBES", "BIES")):
        every = ["O", *(f"{letter}-{kind}" for letter in letters for kind in "XY")]
        allowed = 0
        for tags in itertools.product(every, repeat=4):
            try:
                found = entities(tags, scheme)
            except ValueError:
                continue
            allowed += 1
            back = {"IOB2": to_iob2, "IOBES": to_iobes}[scheme]
            for other, way in (("IOB1", to_iob1), ("IOB2", to_iob2), ("IOBES", to_iobes)):
                there = way([tags], scheme)
                assert entities(there[0], other) == found
                assert back(there, other) == [list(tags)]
        # Each allowed order is one set of entities, so both schemes allow equally many. IOB2: with
        # a O and b inside an entity (of two types), a' = a + b and b' = 2 (a + b) + b.
        a, b = 1, 2
        for _ in range(3):
            a, b = a + b, 2 * (a + b) + b
        assert allowed == a + b


def test_b_without_an_entity_before_it_begins_one_in_iob1():
    assert to_iob2([["O", "B-MISC", "I-MISC"]], "IOB1") == [["O", "B-MISC", "I-MISC"]]


@pytest.mark.parametrize(
    ("tags", "scheme", "message"),
    [
        ("O I-PER", "IOB2", "Sentence 1, position 1: I-PER after O is invalid: IOB2 starts"),
        ("B-PER I-LOC", "IOB2", "position 1: I-LOC after B-PER is invalid"),
        ("B-PER O", "IOBES", "position 1: O after B-PER is invalid: PER must continue with I or E"),
        ("B-PER I-PER", "IOBES", "position 2: the end of the sentence after I-PER is invalid"),
        ("S-PER E-PER", "IOBES", "position 1: E-PER after S-PER is invalid: IOBES starts"),
        ("B-PER E-LOC", "IOBES", "position 1: E-LOC after B-PER is invalid: PER must continue"),
        ("O E-PER", "IOB2", r"position 1: 'E-PER' is not in IOB2 \(O, I-TYPE, B-TYPE\)"),
        ("O PER", "IOB2", "position 1: 'PER' is not in "),
        ("O B-", "IOB2", "position 1: 'B-' is not in "),
        ("o", "IOB1", "position 0: 'o' is not in "),
        ("O", "BIO", "scheme='BIO': expected one of IOB1"),
    ],
)
def test_impossible_tags(tags, scheme, message):
    with pytest.raises(ValueError, match=message):
        to_iob2([[], tags.split()], scheme)


def test_a_text_is_no_list_of_tags_and_an_id_no_tag():
    with pytest.raises(ValueError, match="Sentence 0: expected a list of tags, got the text 'O'"):
        to_iob2(["O"], "IOB2")
    with pytest.raises(ValueError, match="Sentence 0, position 1: 3 is not in "):
        to_iob2([["O", 3]], "IOB2")


def test_conll_2003_as_it_is(shared_dir):
    """The training set has two B that no entity precedes; else IOB1 comes back as it was."""
    changed, count = [], 0
    for name in ("eng.train", "eng.testa", "eng.testb"):
        path = shared_dir / "data" / "ner" / "conll2003" / f"{name}.gz"
        lines = gzip.decompress(path.read_bytes()).decode().split("\n")
        runs = itertools.groupby(lines, key=lambda line: bool(line.strip()))
        sentences = [[line.split()[-1] for line in run] for filled, run in runs if filled]
        again = to_iob1(to_iobes(to_iob2(sentences, "IOB1"), "IOB2"), "IOBES")
        count += sum(len(entities(tags, "IOB1")) for tags in sentences)
        for old, new in zip(sentences, again, strict=True):
            changed += [(a, b) for a, b in zip(old, new, strict=True) if a != b]
    assert changed == [("B-MISC", "I-MISC")] * 2
    assert count == 23499 + 5942 + 5648  # cs/0306050, table 2
