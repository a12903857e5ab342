"""A query and the vocabulary of a catalogue go in; weighted terms of that vocabulary come out."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from proxy.tools.glossary import (
    FIRST_UNSPACED,
    is_foreign,
    translate_unspaced,
    translate_word,
)
from proxy.tools.signals import Signals
from proxy.tools.text import MAX_CHARS, Word, stem, terms, words
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


@dataclass(frozen=True, slots=True)
class Terms:
    """A query: the weight of each term, neighbours, its verb, the share the catalogue knows."""

    weights: Mapping[str, float]
    pairs: frozenset[tuple[str, str]]
    verb: int | None
    coverage: float


def read_query(text: str, vocabulary: Vocabulary, signals: Signals) -> Terms:
    """Spell a query in the catalogue's own words."""
    elsewhere = vocabulary.unspaced < 0.5 and signals.glossary > 0
    if elsewhere and not text.isascii() and len(text) <= MAX_CHARS:
        text = translate_unspaced(text)
    spelled = words(text)[:MAX_TERMS]
    sequence = _choose(spelled, vocabulary)
    if signals.glossary and (is_foreign(text) or vocabulary.rarity.keys().isdisjoint(sequence)):
        sequence = _translate(sequence, vocabulary)
    weights: dict[str, float] = {}
    for term in sequence:
        if term in weights:
            continue
        place = len(weights)
        weight = 1.0 + signals.early * FADE[place] if place < len(FADE) else 1.0
        weights[term] = weight * _discount(term, signals) if term in DULL_TERMS else weight
        if elsewhere and term[0] >= FIRST_UNSPACED:
            weights[term] *= signals.glossary
    coverage = _coverage(sequence, weights, vocabulary)
    for term, weight in _respell(spelled, weights, vocabulary, signals):
        weights[term] = max(weights.get(term, 0.0), weight)
    return Terms(weights, frozenset(pairwise(sequence)), find_verb(sequence[:4]), coverage)


def _translate(sequence: Sequence[str], vocabulary: Vocabulary) -> list[str]:
    """Replace words that the catalogue does not know by English ones, where the glossary does."""
    translated: list[str] = []
    for term in sequence:
        english = "" if term in vocabulary.rarity else translate_word(term)
        translated += terms(english) if english else [term]
    return translated


def _discount(term: str, signals: Signals) -> float:
    discount = signals.weak if term in WEAK_TERMS else 1.0
    return discount * signals.verb_word if term in KINDS else discount


def _choose(spelled: Sequence[Word], vocabulary: Vocabulary) -> list[str]:
    """Take a compound as one word where the catalogue does, else its parts."""
    sequence: list[str] = []
    for whole, parts in spelled:
        if parts and whole not in vocabulary.rarity:
            sequence += parts
        else:
            sequence.append(whole)
    return sequence


def _coverage(
    sequence: Sequence[str], weights: Mapping[str, float], vocabulary: Vocabulary
) -> float:
    rarity, unknown = vocabulary.rarity, vocabulary.unknown
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
    spelled: Sequence[Word],
    weights: Mapping[str, float],
    vocabulary: Vocabulary,
    signals: Signals,
) -> list[tuple[str, float]]:
    """Other spellings that the catalogue knows: joined, split or corrected."""
    rarity = vocabulary.rarity
    wholes = [whole for whole, _ in spelled]
    joined = [left + right for left, right in pairwise(wholes)]
    found = [(term, signals.joined) for term in joined if term in rarity]
    worth = {"plural": 1.0, "split": signals.split, "guessed": signals.guessed}
    for term in weights:
        if term not in rarity:
            manner, others = vocabulary.mend(term)
            found += [(other, worth[manner]) for other in others]
    return found


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
