import gzip
import itertools
from collections import Counter

import numpy as np
import pytest

from keras_bert.data import build_vocabulary
from keras_bert.text.tokenizer import BertTokenizer
from keras_bert.text.vocabulary import read_vocabulary, write_vocabulary

pytest.importorskip("tokenizers")
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def merged_by_hand(words, fixed, size, min_frequency=2):
    """Byte-pair merging in plain Python: the most frequent pair, then that of the lowest ids."""
    ids = {token: number for number, token in enumerate(fixed)}
    spelled = {word: [word[0], *(f"##{c}" for c in word[1:])] for word in words}
    while len(ids) < size:
        pairs = Counter()
        for word, pieces in spelled.items():
            for pair in itertools.pairwise(pieces):
                pairs[pair] += words[word]
        if not pairs:
            break
        count, first, second = min((-n, ids[a], ids[b]) for (a, b), n in pairs.items())
        if -count < min_frequency:
            break
        first, second = ([*ids][number] for number in (first, second))
        merged = first + second.removeprefix("##")
        ids.setdefault(merged, len(ids))
        for pieces in spelled.values():
            place = 0
            while place < len(pieces) - 1:
                if pieces[place : place + 2] == [first, second]:
                    pieces[place : place + 2] = [merged]
                place += 1
    return [*ids]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_vocabulary_is_that_of_merging_by_hand(tmp_path, seed):
    """On short words of few letters many pairs are equally frequent."""
    rng = np.random.default_rng(seed)
    lexicon = ["".join(rng.choice([*"abcd"], rng.integers(1, 9))) for _ in range(150)]
    words = rng.choice(lexicon, 997)
    (tmp_path / "a.txt").write_text(" ".join(words[:500]) + "\n\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress("\n".join(words[500:]).encode()))
    found = build_vocabulary(tmp_path / "*.txt*", 120, unused=3, verbose=False)
    fixed = [*SPECIALS, "[unused0]", "[unused1]", "[unused2]", *"abcd", *("##" + c for c in "abcd")]
    assert found == merged_by_hand(Counter(words.tolist()), fixed, 120)
    assert len(found) == len(set(found)) == 120


TEXT = "The Élan of Über-Köche, cooking [MASK] 北京 the\x07 cook's cookies\nThe cook cooked.\n" * 3


def tokens_of(tmp_path, text=TEXT, size=80, **settings):
    (tmp_path / "a.txt").write_text(text)
    return build_vocabulary(tmp_path / "a.txt", size, verbose=False, **settings)


@pytest.mark.filterwarnings("ignore:the text gives")
@pytest.mark.parametrize(
    ("lowercase", "strip_accents", "there", "not_there"),
    [
        (True, None, ["the", "uber", "koche", "elan", "北", "京", "##s"], ["É", "é", "ü", "T"]),
        (True, False, ["über", "köche", "élan"], ["É", "Ü", "uber", "elan"]),
        (False, None, ["The", "Über", "Élan", "MASK"], ["uber", "über"]),
        (False, True, ["The", "Uber", "Elan", "Koche"], ["Über", "É"]),
    ],
)
def test_text_is_cut_as_the_tokenizer_cuts_it(tmp_path, lowercase, strip_accents, there, not_there):
    tokens = tokens_of(tmp_path, size=300, lowercase=lowercase, strip_accents=strip_accents)
    assert set(there) <= set(tokens) and not set(not_there) & set(tokens)
    # With room for all words, the tokenizer leaves each word whole, and finds no [UNK].
    tokenizer = BertTokenizer(tokens, lowercase=lowercase, strip_accents=strip_accents)
    ids = tokenizer(TEXT.split("\n")).flat_values.numpy()
    pieces = [tokens[id] for id in ids]
    assert "[UNK]" not in pieces and not any(piece.startswith("##") for piece in pieces)
    assert {",", "-", "'", ".", "[", "]"} <= set(pieces)
    assert "##," not in tokens and "##北" not in tokens  # they never go on a word


@pytest.mark.filterwarnings("ignore:the text gives")
def test_a_word_of_a_rare_character_is_left_out(tmp_path):
    text = "banana bandana baña\n" * 3 + "xylem "
    everything = tokens_of(tmp_path, text, 99, strip_accents=False, min_frequency=1)
    assert {"xylem", "baña", "##y", "##ñ"} <= set(everything)
    for settings in (dict(alphabet_size=4, min_frequency=1), dict(alphabet_size=4)):
        tokens = tokens_of(tmp_path, text, 99, strip_accents=False, **settings)
        assert tokens[5:12] == [*"abdn", "##a", "##d", "##n"]
        assert {"banana", "bandana"} < set(tokens)
        assert {c for token in tokens[5:] for c in token} == set("abdn#")
    # What is met once falls out with min_frequency, too.
    tokens = tokens_of(tmp_path, text, 99, strip_accents=False)
    assert "baña" in tokens and not set("xylem") & {*tokens}


def test_what_does_not_fit(tmp_path):
    with pytest.raises(ValueError, match=r"size=20: expected at least .* 7 unused ones and \d+ ch"):
        tokens_of(tmp_path, size=20, unused=7)
    with pytest.warns(
        UserWarning, match=r"gives \d+ tokens, fewer than size=5000.* occurs 2 times"
    ):
        assert len(tokens_of(tmp_path, size=5000)) < 200
    with pytest.raises(ValueError, match=r"no words in .*a\.txt"):
        tokens_of(tmp_path, " \n\x07\n")
    for name in ("size", "min_frequency", "alphabet_size"):
        with pytest.raises(ValueError, match=f"{name}=0: expected a whole number, 1 or more"):
            tokens_of(tmp_path, **{name: 0})
    with pytest.raises(FileNotFoundError, match=r"b\.txt"):
        build_vocabulary(tmp_path / "b.txt", 100)


def test_progress_and_a_vocabulary_that_reads_back(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("keras_bert.data.vocabulary_training.PROGRESS_SECONDS", 0)
    (tmp_path / "a.txt").write_text(TEXT)
    tokens = build_vocabulary(tmp_path / "a.txt", 60)
    assert "counting words: 0 million characters, 19 different words" in capsys.readouterr().err
    write_vocabulary(tmp_path / "vocab.txt", tokens)
    assert read_vocabulary(tmp_path / "vocab.txt") == tokens
