"""A query and the vocabulary of a catalogue go in; weighted terms of that vocabulary come out."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

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
FADE = tuple(math.exp(-at / 4.0) for at in range(24))
"""How fast the extra weight of early words fades."""
MIN_SPLIT, MIN_TYPO = 6, 5
MAX_TERMS = 400
"""Of an endless query this many words are read."""


class Vocabulary:
    """The words of a catalogue, how rare each is, and how to read a misspelt one.

    `unspaced` is the share of its tools that are described in an unspaced script.
    """

    def __init__(self, rarity: Mapping[str, float], unknown: float, unspaced: float = 1.0) -> None:
        self.rarity = rarity
        self.unknown = unknown
        self.unspaced = unspaced

    @cached_property
    def _halves(self) -> dict[str, list[str]]:
        """Known words by their length and first or last letters: one edit leaves some of them."""
        halves = defaultdict[str, list[str]](list)
        for word in self.rarity:
            if len(word) >= MIN_TYPO - 1 and word.isascii() and word.isalpha():
                halves[f"{word[:3]}{len(word)}"].append(word)
                halves[f"{len(word)}{word[-3:]}"].append(word)
        return dict(halves)

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
    if signals.glossary and (is_foreign(text) or not any(t in vocabulary.rarity for t in sequence)):
        sequence = _translate(sequence, vocabulary)
    weights: dict[str, float] = {}
    for term in sequence:
        if term not in weights:
            weights[term] = _weigh(term, len(weights), signals)
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


def _weigh(term: str, place: int, signals: Signals) -> float:
    weight = 1.0 + signals.early * FADE[place] if place < len(FADE) else 1.0
    if term in WEAK_TERMS:
        weight *= signals.weak
    return weight * signals.verb_word if term in KINDS else weight


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
    known = total = 0.0
    for term in sequence:
        rarity = vocabulary.rarity.get(term)
        if rarity is not None:
            known += weights[term] * rarity
        total += weights[term] * (vocabulary.unknown if rarity is None else rarity)
    return known / total if total else 0.0


def _respell(
    spelled: Sequence[Word],
    weights: Mapping[str, float],
    vocabulary: Vocabulary,
    signals: Signals,
) -> list[tuple[str, float]]:
    """Other spellings that the catalogue knows: joined, split or corrected."""
    found: list[tuple[str, float]] = []
    for (left, _), (right, _) in pairwise(spelled):
        if left + right in vocabulary.rarity:
            found.append((left + right, signals.joined))
    for term in weights:
        if term not in vocabulary.rarity:
            found += _mend(term, vocabulary, signals)
    return found


def _mend(term: str, vocabulary: Vocabulary, signals: Signals) -> list[tuple[str, float]]:
    if term.removesuffix("s") in vocabulary.rarity:
        return [(term[:-1], 1.0)]
    for at in range(3, len(term) - 1) if len(term) >= MIN_SPLIT and term.isascii() else ():
        halves = stem(term[:at]), stem(term[at:])
        if all(half in vocabulary.rarity for half in halves):
            return [(half, signals.split) for half in halves]
    guess = vocabulary.guess(term) if len(term) >= MIN_TYPO else None
    return [(guess, signals.guessed)] if guess else []


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
