"""A pair of texts comes in; how likely it asks for a change of memory goes out, by its wording.

A weight for each run of letters, word, pair of words, beginning of a clause, and combination of an
answer with the question before it, in plain Python. It stands beside the networks, which know
meanings but blur wordings, and alone where numpy is not installed.
"""

import math
import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise

from proxy.memory.gate.pair import Pair, clip, ease_of, split_clauses

BUCKETS = 1 << 18
MOST_CHARS = 1_000
"""Of a message; bounds the time that a long one takes."""
_SHORT, _BRIEF = 25, 40
_ASKS = ("?", "？", "؟")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_VOWELS = re.compile("[\u0591-\u05c7\u0640\u064b-\u0652]")
"""Hebrew and Arabic marks that some people write and most leave out."""


class Words:
    """A linear model over names of features; weights and rarities are small whole numbers."""

    def __init__(
        self, weights: Sequence[int], rarities: Sequence[int], scale: float, shift: float
    ) -> None:
        self._weights = weights
        self._rarities = rarities
        self._scale = scale
        self._shift = shift

    def judge(self, pair: Pair) -> float:
        """The probability; one half is the threshold."""
        logit = self.score(pair) - self._shift + ease_of(pair.latest)
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))

    def score(self, pair: Pair) -> float:
        """The logit, before the threshold is taken into account."""
        found = read_features(pair)
        total = sum(self._weights[feature] for feature in found)
        size = sum(self._rarities[feature] ** 2 for feature in found)
        return total * self._scale / math.sqrt(max(1, size))


def read_features(pair: Pair) -> set[int]:
    """The buckets that a pair fills."""
    return {zlib.crc32(name.encode()) % BUCKETS for name in _read_names(pair)}


def _read_names(pair: Pair) -> Iterator[str]:
    own = _fold(clip(pair.own, MOST_CHARS))
    before = _fold(pair.before)
    last = (split_clauses(before) or [""])[-1]
    yield from _letters(own)
    yield from _words(own)
    for clause in split_clauses(own):
        yield from _clause(clause)
    yield from _form(own, before, last, quotes=pair.quotes)
    yield from _question(last, before, short=len(own) < _SHORT)
    if len(own) < _BRIEF:
        yield from _answer(own, last, _kind(before))


def _letters(own: str) -> Iterator[str]:
    """Runs within words, and runs that do not care where words end."""
    for word in own.split():
        yield from (f"o{run}" for run in _runs(f"<{word}>", 2, 5))
    yield from (f"x{run}" for run in _runs(own.replace(" ", "_"), 4, 6))


def _words(own: str) -> Iterator[str]:
    words = _TOKEN.findall(own)
    yield from (f"w{word}" for word in words)
    yield from (f"2{one} {two}" for one, two in zip(["^", *words], [*words, "$"], strict=True))


def _clause(clause: str) -> Iterator[str]:
    """How it begins and ends: an imperative stands first, and last in other languages."""
    words = _TOKEN.findall(clause)
    if words:
        yield from (f"c{words[0]}", f"c{' '.join(words[:2])}", f"e{words[-1]}")
    joined = clause.replace(" ", "_")
    yield from (f"S{joined[:size]}" for size in (3, 4, 5, 6, 8, 11, 14))
    yield from (f"Z{joined[-size:]}" for size in (3, 4, 5, 8))
    if clause.endswith(_ASKS):
        yield from (f"?{word}" for word in words)


def _form(own: str, before: str, last: str, *, quotes: bool) -> Iterator[str]:
    """Lengths and marks, alone and together with the words."""
    clauses = split_clauses(own)
    length, asks = min(3, len(own) // 60), own.endswith(_ASKS)
    yield from (f"quotes {quotes}", f"asks {asks}", f"before {_kind(before)}")
    yield f"short {len(own) < _SHORT} {bool(last)}"
    yield f"length {min(9, len(own) // 20)}"
    yield f"clauses {min(6, len(clauses))} {bool(last)}"
    for clause in clauses[:1] + clauses[-1:]:
        joined = clause.replace(" ", "_")
        yield from (f"F{asks}{quotes}{length}{joined[:size]}" for size in (4, 7))
    yield from (f"G{length}{asks}{word}" for word in _TOKEN.findall(own))


def _question(last: str, before: str, *, short: bool) -> Iterator[str]:
    """What the assistant said, apart for messages that may be an answer to it."""
    words = _TOKEN.findall(last)
    for word in last.split():
        yield f"b{short}{word}"
        yield from (f"B{short}{run}" for run in _runs(f"<{word}>", 3, 4))
    for word in before.split():
        yield from (f"A{run}" for run in _runs(f"<{word}>", 4, 5))
    yield from (f"V{short}{one} {two}" for one, two in pairwise(words))
    yield from (f"U{word}" for word in words[:3])


def _answer(own: str, last: str, kind: str) -> Iterator[str]:
    """A brief message together with the question: a yes means what was asked."""
    words, asked = _TOKEN.findall(own), _TOKEN.findall(last)
    yield from (f"C{kind}{word}" for word in words)
    for word in own.split():
        yield from (f"C{kind}{run}" for run in _runs(f"<{word}>", 3, 3))
    for two in set(asked):
        yield f"T{words[0] if words else ''}|{two[:5]}"
        yield from (f"R{one[:5]}|{two[:5]}" for one in set(words))
    if len(own) < _SHORT:
        for word in set(last.split()):
            yield from (f"{one}|{word}" for one in set(own.split()))
            yield from (f"X{own[:3]}|{run}" for run in _runs(f"<{word}>", 4, 4))


def _kind(before: str) -> str:
    if not before:
        return "none"
    return "ask" if before.endswith(_ASKS) else "say"


def _fold(text: str) -> str:
    return _VOWELS.sub("", unicodedata.normalize("NFKC", text).casefold())


def _runs(text: str, least: int, most: int) -> Iterator[str]:
    if len(text) <= most:
        yield text
    for size in range(least, most + 1):
        yield from (text[start : start + size] for start in range(len(text) - size + 1))
