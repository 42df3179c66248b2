"""Makes minimal pairs: an English sentence, and the same with one mistake of grammar.

usage: python tools/make_minimal_pairs.py --vocabulary vocab.txt --output pairs.jsonl

Each line has "good", "bad", "paradigm" and "field", for `keras_bert.metrics.minimal_pairs`. The
sentences are filled templates. Words that are not whole tokens of the vocabulary are left out, so a
model trained on the corpus of that vocabulary knows all words that are used. The phenomena are
those of BLiMP (Warstadt et al. 2020); templates, words and sentences are our own.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path

# Nouns as "singular plural", by gender; verbs as "base third past participle".
MEN = "man men|boy boys|king kings|father fathers|brother brothers|son sons|uncle uncles|lord lords"
WOMEN = "woman women|girl girls|queen queens|mother mothers|sister sisters|daughter daughters"
WOMEN += "|aunt aunts|lady ladies|wife wives"
PEOPLE = "doctor doctors|soldier soldiers|teacher teachers|servant servants|captain captains"
PEOPLE += "|officer officers|writer writers|farmer farmers|traveller travellers|lawyer lawyers"
PEOPLE += "|friend friends|neighbour neighbours|prisoner prisoners|sailor sailors|student students"
THINGS = "book books|letter letters|house houses|ship ships|table tables|picture pictures"
THINGS += "|door doors|sword swords|garden gardens|tree trees|bridge bridges|window windows"
THINGS += "|boat boats|road roads|lamp lamps|chair chairs|box boxes|coat coats|stone stones"
PLACES = "house garden city village forest church room street field castle island river town hall"
ADJECTIVES = "old young poor rich great small strong happy proud strange good tall quiet"
QUALITIES = "old new large small heavy beautiful strange white black dark red green"
INTRANSITIVE = "sleep sleeps slept slept|laugh laughs laughed laughed|run runs ran run"
INTRANSITIVE += "|smile smiles smiled smiled|arrive arrives arrived arrived|weep weeps wept wept"
INTRANSITIVE += "|come comes came come|go goes went gone|fall falls fell fallen|stand stands stood"
INTRANSITIVE += " stood|walk walks walked walked|die dies died died|sit sits sat sat"
TRANSITIVE = "see sees saw seen|know knows knew known|love loves loved loved|meet meets met met"
TRANSITIVE += "|help helps helped helped|follow follows followed followed|hate hates hated hated"
TRANSITIVE += "|watch watches watched watched|visit visits visited visited"
TRANSITIVE += "|admire admires admired admired|forget forgets forgot forgotten"
# With an object that is a thing, which cannot be left out.
HANDLING = "find finds found found|take takes took taken|break breaks broke broken"
HANDLING += "|bring brings brought brought|carry carries carried carried|make makes made made"
HANDLING += "|buy buys bought bought|choose chooses chose chosen|see sees saw seen"
REFLEXIVE = "see saw|hurt hurt|blame blamed|hide hid|describe described|help helped|admire admired"
REFLEXIVE += "|forget forgot|kill killed|watch watched|save saved|defend defended"
THINKING = "said thought believed knew hoped felt"


class Words:
    """The words of a vocabulary, drawn at random.

    Args:
        tokens: tokens of the vocabulary.
        seed: seed of the draws.
    """

    def __init__(self, tokens: Iterable[str], seed: str):
        self._known, self._draws = set(tokens), random.Random(seed)

    def one(self, *listed: str) -> list[str]:
        """An entry of the lists, in which all words are in the vocabulary."""
        separator = "|" if any("|" in words for words in listed) else " "
        entries = [entry.split() for words in listed for entry in words.split(separator)]
        known = [entry for entry in entries if all(word in self._known for word in entry)]
        if not known:
            raise ValueError(f"no words of the vocabulary among {listed[0]!r:.80}")
        return self._draws.choice(known)

    def word(self, listed: str) -> str:
        """One of single words."""
        return self.one(listed)[0]

    def flip(self) -> bool:
        """True or False."""
        return self._draws.random() < 0.5

    def two(self, *listed: str) -> tuple[list[str], list[str]]:
        """Two different entries."""
        first = second = self.one(*listed)
        while second == first:
            second = self.one(*listed)
        return first, second


Pair = tuple[str, str]  # the good sentence and the bad one


def subject_verb(w: Words) -> Pair:
    many = w.flip()
    noun, verb = w.one(MEN, WOMEN, PEOPLE)[many], w.one(INTRANSITIVE)
    start, end = f"the {w.word(ADJECTIVES)} {noun}", f"in the {w.word(PLACES)} ."
    return f"{start} {verb[not many]} {end}", f"{start} {verb[many]} {end}"


def be_after_phrase(w: Words) -> Pair:
    many = w.flip()
    noun = w.one(THINGS)
    start = f"the {noun[many]} of the {w.one(MEN, WOMEN, PEOPLE)[not many]} "
    is_are = ["is", "are"]
    end = f" {w.word(QUALITIES)} ."
    return start + is_are[many] + end, start + is_are[not many] + end


def be_after_clause(w: Words) -> Pair:
    many = w.flip()
    noun, other = w.two(MEN, WOMEN, PEOPLE)
    start = f"the {noun[many]} that the {other[not many]} {w.one(TRANSITIVE)[2]} "
    was_were = ["was", "were"]
    end = f" {w.word(ADJECTIVES)} ."
    return start + was_were[many] + end, start + was_were[not many] + end


def has_have(w: Words) -> Pair:
    many = w.flip()
    start = f"the {w.one(MEN, WOMEN, PEOPLE)[many]} "
    end = f" {w.one(INTRANSITIVE)[3]} in the {w.word(PLACES)} ."
    forms = ["has", "have"]
    return start + forms[many] + end, start + forms[not many] + end


def determiner_noun(w: Words) -> Pair:
    many = w.flip()
    this = [["this", "these"], ["that", "those"]][w.flip()][many]
    noun = w.one(THINGS)
    start = f"the {w.one(MEN, WOMEN, PEOPLE)[0]} {w.one(HANDLING)[2]} {this} "
    return f"{start}{noun[many]} .", f"{start}{noun[not many]} ."


def determiner_adjective_noun(w: Words) -> Pair:
    many = w.flip()
    this = [["this", "these"], ["that", "those"]][w.flip()][many]
    noun = w.one(THINGS)
    start = f"the {w.one(MEN, WOMEN, PEOPLE)[0]} {w.one(HANDLING)[2]} {this} {w.word(QUALITIES)} "
    return f"{start}{noun[many]} .", f"{start}{noun[not many]} ."


def participle(w: Words) -> Pair:
    verb = w.one(HANDLING)
    while verb[2] == verb[3]:
        verb = w.one(HANDLING)
    perfect = w.flip()
    start = f"the {w.one(MEN, WOMEN, PEOPLE)[0]} {'had ' if perfect else ''}"
    end = f" the {w.word(QUALITIES)} {w.one(THINGS)[0]} ."
    forms = verb[2:]
    return start + forms[perfect] + end, start + forms[not perfect] + end


def base_after_modal(w: Words) -> Pair:
    verb = w.one(TRANSITIVE)
    start = f"the {w.one(MEN, WOMEN, PEOPLE)[0]} {w.word('will would could must should')} "
    end = f" the {w.one(MEN, WOMEN, PEOPLE)[0]} ."
    return start + verb[0] + end, start + verb[2] + end


def pronoun_case(w: Words) -> Pair:
    good, bad = w.one("him he|them they|her she|us we|me i")
    if good == "her":
        good, bad = "him", "he"  # "her" may begin a longer phrase
    start = f"the {w.one(MEN, WOMEN, PEOPLE)[0]} {w.one(TRANSITIVE)[2]} "
    end = f" in the {w.word(PLACES)} ."
    return start + good + end, start + bad + end


def _self(female: bool) -> str:
    return "herself" if female else "himself"


def reflexive_gender(w: Words) -> Pair:
    female = w.flip()
    start = f"the {w.one(WOMEN if female else MEN)[0]} {w.one(REFLEXIVE)[1]} "
    end = f" in the {w.word(PLACES)} ."
    return start + _self(female) + end, start + _self(not female) + end


def reflexive_number(w: Words) -> Pair:
    many = w.flip()
    female = w.flip()
    start = f"the {w.one(WOMEN if female else MEN)[many]} {w.one(REFLEXIVE)[1]} "
    forms = [_self(female), "themselves"]
    end = f" in the {w.word(PLACES)} ."
    return start + forms[many] + end, start + forms[not many] + end


def reflexive_domain(w: Words) -> Pair:
    female = w.flip()
    near, far = (WOMEN, MEN) if female else (MEN, WOMEN)
    start = f"the {w.one(far)[0]} {w.word(THINKING)} that the {w.one(near)[0]} "
    start += f"{w.one(REFLEXIVE)[1]} "
    return f"{start}{_self(female)} .", f"{start}{_self(not female)} ."


def reflexive_clause(w: Words) -> Pair:
    female = w.flip()
    head, inner = (WOMEN, MEN) if female else (MEN, WOMEN)
    start = f"the {w.one(head)[0]} that the {w.one(inner)[0]} {w.one(TRANSITIVE)[2]} "
    start += f"{w.one(REFLEXIVE)[1]} "
    return f"{start}{_self(female)} .", f"{start}{_self(not female)} ."


def ever_negation(w: Words) -> Pair:
    noun, verb = w.one(MEN, WOMEN, PEOPLE)[0], w.one(TRANSITIVE)[3]
    end = f"{noun} has ever {verb} the {w.one(MEN, WOMEN, PEOPLE)[0]} ."
    return f"no {end}", f"{w.word('some every the this')} {end}"


def ever_scope(w: Words) -> Pair:
    noun, other = (x[1] for x in w.two(MEN, WOMEN, PEOPLE))
    verb, last = w.one(TRANSITIVE)[2], w.one(INTRANSITIVE)[3]
    return (
        f"no {noun} that the {other} {verb} have ever {last} .",
        f"the {noun} that no {other} {verb} have ever {last} .",
    )


def ever_only(w: Words) -> Pair:
    end = f"the {w.one(MEN, WOMEN, PEOPLE)[0]} had ever {w.one(HANDLING)[3]} the "
    end += f"{w.one(THINGS)[0]} ."
    return f"only {end}", f"even {end}"


def there_quantifier(w: Words) -> Pair:
    noun = w.one(MEN, WOMEN, PEOPLE, THINGS)
    end = f"in the {w.word(PLACES)} ."
    if w.flip():
        return (
            f"there were {w.word('many some few two three')} {noun[1]} {end}",
            f"there were {w.word('most all both')} {noun[1]} {end}",
        )
    return (
        f"there was {w.word('a one no')} {noun[0]} {end}",
        f"there was {w.word('each every')} {noun[0]} {end}",
    )


def passive(w: Words) -> Pair:
    start = f"the {w.one(MEN, WOMEN, PEOPLE)[0]} was "
    end = f" by the {w.one(MEN, WOMEN, PEOPLE)[0]} ."
    bad = w.one(INTRANSITIVE)[3]
    while bad in ("run", "stood"):
        bad = w.one(INTRANSITIVE)[3]
    return start + w.one(TRANSITIVE)[3] + end, start + bad + end


def _asking(w: Words) -> str:
    return f"the {w.one(MEN, WOMEN, PEOPLE)[0]} {w.word('knew saw learned remembered')} "


def gap_needs_what(w: Words) -> Pair:
    start = _asking(w)
    end = f" the {w.one(MEN, WOMEN, PEOPLE)[0]} had {w.one(HANDLING)[3]} ."
    return f"{start}what{end}", f"{start}that{end}"


def no_gap_needs_that(w: Words) -> Pair:
    start = _asking(w)
    end = f" the {w.one(MEN, WOMEN, PEOPLE)[0]} had {w.one(HANDLING)[3]} the {w.one(THINGS)[0]} ."
    return f"{start}that{end}", f"{start}what{end}"


def coordinate_island(w: Words) -> Pair:
    first, second = (x[0] for x in w.two(MEN, WOMEN, PEOPLE))
    verb = w.one(TRANSITIVE)[0]
    return (
        f"who did the {first} and the {second} {verb} ?",
        f"who did the {first} {verb} the {second} and ?",
    )


def adjunct_island(w: Words) -> Pair:
    person, thing = w.one(MEN, WOMEN, PEOPLE)[0], w.one(THINGS)[0]
    verb, doing = w.one(HANDLING)[0], w.word("seeing taking leaving opening looking")
    when = w.word("before after without while")
    doing = "seeing" if doing == "looking" else doing
    return (
        f"what did the {person} {verb} {when} {doing} the {thing} ?",
        f"what did the {person} {verb} the {thing} {when} {doing} ?",
    )


def left_branch_island(w: Words) -> Pair:
    person, thing = w.one(MEN, WOMEN, PEOPLE)[0], w.one(THINGS)[0]
    verb, whose = w.one(HANDLING)[0], w.word("whose which")
    return (
        f"{whose} {thing} did the {person} {verb} ?",
        f"{whose} did the {person} {verb} {thing} ?",
    )


def subject_island(w: Words) -> Pair:
    person, other = (x[0] for x in w.two(MEN, WOMEN, PEOPLE))
    thing, verb = w.one(THINGS)[0], w.one(TRANSITIVE)[0]
    return (
        f"who did the {thing} of the {person} make the {other} {verb} ?",
        f"who did the {thing} of make the {other} {verb} the {person} ?",
    )


PARADIGMS: dict[str, tuple[Callable[[Words], Pair], ...]] = {
    "agreement": (
        subject_verb,
        be_after_phrase,
        be_after_clause,
        has_have,
        determiner_noun,
        determiner_adjective_noun,
    ),
    "forms": (participle, base_after_modal, pronoun_case, passive),
    "binding": (reflexive_gender, reflexive_number, reflexive_domain, reflexive_clause),
    "licensing": (ever_negation, ever_scope, ever_only, there_quantifier),
    "islands": (
        gap_needs_what,
        no_gap_needs_that,
        coordinate_island,
        adjunct_island,
        left_branch_island,
        subject_island,
    ),
}


def make_pairs(tokens: Iterable[str], count: int = 250, seed: int = 0) -> list[dict[str, str]]:
    """Makes different pairs of every paradigm.

    Args:
        tokens: tokens of the vocabulary, lower-case.
        count: number of pairs of a paradigm.
        seed: seed of the draws; a paradigm's pairs do not depend on the others.

    Returns:
        Dicts of "good", "bad", "paradigm" and "field".

    Raises:
        ValueError: if the vocabulary has too few of the words.
    """
    tokens, found = set(tokens), []
    for field, makers in PARADIGMS.items():
        for maker in makers:
            words, pairs = Words(tokens, f"{seed} {maker.__name__}"), {}
            for _ in range(100 * count):
                if len(pairs) == count:
                    break
                good, bad = maker(words)
                if good != bad:
                    pairs[good] = bad
            if len(pairs) < count:
                raise ValueError(
                    f"count={count}: the vocabulary allows {len(pairs)} pairs of {maker.__name__}"
                )
            found += [
                {"good": good, "bad": bad, "paradigm": maker.__name__, "field": field}
                for good, bad in pairs.items()
            ]
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--vocabulary", required=True, help="vocab.txt of an uncased BERT")
    parser.add_argument("--output", required=True, help="JSON lines")
    parser.add_argument("--count", type=int, default=250, help="pairs a paradigm")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    tokens = Path(args.vocabulary).read_text(encoding="utf-8").split("\n")
    pairs = make_pairs(tokens, args.count, args.seed)
    lines = "".join(json.dumps(pair) + "\n" for pair in pairs)
    Path(args.output).write_text(lines, encoding="utf-8")
    print(f"{len(pairs):,} pairs of {len(pairs) // args.count} paradigms in {args.output}")


if __name__ == "__main__":
    main()
