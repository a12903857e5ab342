"""A query and the vocabulary of a catalogue go in; weighted terms of that vocabulary come out."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise, repeat
from operator import add
from typing import Literal

import msgspec

from proxy.tools.glossary import (
    FIRST_UNSPACED,
    is_foreign,
    translate_unspaced,
    translate_word,
)
from proxy.tools.signals import Signals
from proxy.tools.text import MAX_CHARS, MIN_SENTENCE, Word, cut, stem, terms, words
from proxy.tools.verbs import KINDS, find_verb

_WEAK_WORDS = """
    find show tell give provide help look looking best latest new information info detail details
    specific various include including available get see know use using used make take recommend
    suggest check search good great top popular let thank current currently different offer explore
    list retrieve access related relevant based
"""
WEAK_TERMS = frozenset(stem(word) for word in _WEAK_WORDS.split())
DULL_TERMS = WEAK_TERMS | KINDS.keys()
"""Words that count less than their rarity."""
FADE = tuple(math.exp(-at / 4.0) for at in range(24))
"""How fast the extra weight of early words fades."""
MIN_SPLIT, MIN_TYPO = 6, 5
MAX_TERMS = 400
"""Of an endless query this many words are read."""
MENDED = 4_096
"""Words that a catalogue lacks and remembers how to read."""

Mending = tuple[Literal["plural", "split", "guessed"], tuple[str, ...]]
"""How a word was mended, and the words of the catalogue that it may mean."""


class Vocabulary:
    """The words of a catalogue, how rare each is, and how to read a misspelt one.

    `unspaced` is the share of its tools that are described in an unspaced script.
    """

    def __init__(self, rarity: Mapping[str, float], unknown: float, unspaced: float = 1.0) -> None:
        self.rarity = rarity
        self.unknown = unknown
        self.unspaced = unspaced
        self._mended: dict[str, Mending] = {}

    @cached_property
    def _halves(self) -> dict[str, list[str]]:
        """Known words by their length and first or last letters: one edit leaves some of them."""
        halves = defaultdict[str, list[str]](list)
        for word in self.rarity:
            if len(word) >= MIN_TYPO - 1 and word.isascii() and word.isalpha():
                halves[f"{word[:3]}{len(word)}"].append(word)
                halves[f"{len(word)}{word[-3:]}"].append(word)
        return dict(halves)

    def mend(self, term: str) -> "Mending":
        """How else to read a term that the catalogue lacks; remembered, as messages repeat."""
        found = self._mended.get(term)
        if found is None:
            found = self._find_mending(term)
            if len(self._mended) >= MENDED:
                self._mended.clear()
            self._mended[term] = found
        return found

    def _find_mending(self, term: str) -> "Mending":
        if term.removesuffix("s") in self.rarity:
            return "plural", (term[:-1],)
        for at in range(3, len(term) - 1) if len(term) >= MIN_SPLIT and term.isascii() else ():
            halves = stem(term[:at]), stem(term[at:])
            if all(half in self.rarity for half in halves):
                return "split", halves
        guess = self.guess(term) if len(term) >= MIN_TYPO else None
        return "guessed", (guess,) if guess else ()

    def guess(self, word: str) -> str | None:
        """The first known word one edit away, if any."""
        if not (word.isascii() and word.isalpha()):
            return None
        known = self._halves
        for size in (len(word), len(word) + 1, len(word) - 1):
            candidates = known.get(f"{word[:3]}{size}", []) + known.get(f"{size}{word[-3:]}", [])
            found = next((other for other in candidates if _one_edit(word, other)), None)
            if found:
                return found
        return None


class Terms(msgspec.Struct, frozen=True):
    """A query: the weight of each term, neighbours, its verb, the share the catalogue knows.

    `unknown` are the words that the catalogue lacks.
    """

    weights: Mapping[str, float]
    unknown: Collection[str]
    pairs: frozenset[tuple[str, str]]
    verb: int | None
    coverage: float


class _Text(msgspec.Struct, frozen=True):
    """A text and its words."""

    text: str
    words: Sequence[Word]


class Reader:
    """Spells queries in the words of one catalogue; `signals` say what each manner is worth."""

    def __init__(self, vocabulary: Vocabulary, signals: Signals) -> None:
        self._vocabulary = vocabulary
        self._glossary = signals.glossary
        self._unspaced = vocabulary.unspaced < 0.5 and signals.glossary > 0
        self._early = [1.0 + signals.early * share for share in FADE]
        self._dull = {term: _discount(term, signals) for term in DULL_TERMS}
        self._joined = signals.joined
        self._mended = {"plural": 1.0, "split": signals.split, "guessed": signals.guessed}

    def read(self, text: str, most: int) -> tuple[Terms, list[Terms]]:
        """Read a query, and by themselves its first sentences, at most `most`.

        There are none when it is just one. Each word is looked at once for both.
        """
        parts = [self._split(part) for part in cut(text)]
        spelled = [word for part in parts for word in part.words]
        whole = _Text(text, spelled) if len(text) <= MAX_CHARS else self._split(text)
        own = [part for part in parts if len(part.text) >= MIN_SENTENCE]
        sentences = own[:most] if len(own) > 1 else []
        return self._read(whole), [self._read(sentence) for sentence in sentences]

    def _split(self, text: str) -> _Text:
        return _Text(text, words(self._in_english(text)))

    def _in_english(self, text: str) -> str:
        """A text with its Chinese and Japanese words replaced, if the catalogue has no such."""
        wanted = self._unspaced and not text.isascii() and len(text) <= MAX_CHARS
        return translate_unspaced(text) if wanted else text

    def _read(self, own: _Text) -> Terms:
        spelled = own.words[:MAX_TERMS]
        sequence, lacking = self._spell(own.text, spelled)
        weights = self._weigh(sequence, own.text.isascii())
        unknown = dict.fromkeys(lacking)
        all_known = 1.0 if any(weights.values()) else 0.0
        coverage = self._find_coverage(sequence, weights) if unknown else all_known
        for term, weight in self._respell(spelled, unknown):
            weights[term] = max(weights.get(term, 0.0), weight)
        pairs = frozenset(pairwise(sequence))
        return Terms(weights, unknown, pairs, find_verb(sequence[:4]), coverage)

    def _spell(self, text: str, spelled: Sequence[Word]) -> tuple[list[str], list[str]]:
        """The terms of a text in order, and those among them that the catalogue lacks."""
        rarity = self._vocabulary.rarity
        sequence = _choose(spelled, rarity)
        lacking = [term for term in sequence if term not in rarity]
        if not (lacking and self._glossary):
            return sequence, lacking
        if len(lacking) == len(sequence) or is_foreign(self._in_english(text)):
            sequence = _translate(sequence, rarity)
            lacking = [term for term in sequence if term not in rarity]
        return sequence, lacking

    def _weigh(self, sequence: Sequence[str], plain: bool) -> dict[str, float]:
        """What each term counts by its place and its kind; `plain` text is ASCII."""
        places = zip(dict.fromkeys(sequence), chain(self._early, repeat(1.0)), strict=False)
        dull = self._dull
        weights = {term: early * dull[term] if term in dull else early for term, early in places}
        for term in weights if self._unspaced and not plain else ():
            if term[0] >= FIRST_UNSPACED:
                weights[term] *= self._glossary
        return weights

    def _find_coverage(self, sequence: Sequence[str], weights: Mapping[str, float]) -> float:
        rarity, unknown = self._vocabulary.rarity, self._vocabulary.unknown
        known = total = 0.0
        for term in sequence:
            if term in rarity:
                worth = weights[term] * rarity[term]
                known += worth
                total += worth
            else:
                total += weights[term] * unknown
        return known / total if total else 0.0

    def _respell(
        self, spelled: Sequence[Word], unknown: Collection[str]
    ) -> list[tuple[str, float]]:
        """Other spellings that the catalogue knows: joined, split or corrected."""
        rarity = self._vocabulary.rarity
        wholes = [whole for whole, _ in spelled]
        joined = map(add, wholes, wholes[1:])
        found = [(term, self._joined) for term in joined if term in rarity]
        for term in unknown:
            manner, others = self._vocabulary.mend(term)
            found += [(other, self._mended[manner]) for other in others]
        return found


def _translate(sequence: Sequence[str], rarity: Mapping[str, float]) -> list[str]:
    """Replace words that the catalogue does not know by English ones, where the glossary does."""
    translated: list[str] = []
    for term in sequence:
        english = "" if term in rarity else translate_word(term)
        translated += terms(english) if english else [term]
    return translated


def _discount(term: str, signals: Signals) -> float:
    discount = signals.weak if term in WEAK_TERMS else 1.0
    return discount * signals.verb_word if term in KINDS else discount


def _choose(spelled: Sequence[Word], rarity: Mapping[str, float]) -> list[str]:
    """Take a compound as one word where the catalogue does, else its parts."""
    sequence: list[str] = []
    for whole, parts in spelled:
        if parts and whole not in rarity:
            sequence += parts
        else:
            sequence.append(whole)
    return sequence


def _one_edit(left: str, right: str) -> bool:
    """Whether one insertion, deletion, replacement or swap of neighbours turns left into right."""
    if abs(len(left) - len(right)) > 1:
        return False
    start = next(
        (at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b),
        min(len(left), len(right)),
    )
    a, b = left[start:], right[start:]
    swapped = len(a) > 1 and len(b) > 1 and a[0] == b[1] and a[1] == b[0] and a[2:] == b[2:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or swapped
