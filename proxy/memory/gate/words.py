"""A pair of texts comes in; how likely it asks for a change of memory goes out, by letters.

For installations without numpy: a weight for each run of letters, in plain Python. It knows less
than the networks, so its threshold lets more through.
"""

import math
import unicodedata
import zlib
from collections.abc import Iterator, Sequence

from proxy.memory.gate.pair import Pair, split_clauses

BUCKETS = 1 << 15
_SHORT = 25


class Words:
    """A linear model over runs of three to five letters; weights are small whole numbers."""

    def __init__(self, weights: Sequence[int], scale: float, shift: float) -> None:
        self._weights = weights
        self._scale = scale
        self._shift = shift

    def judge(self, pair: Pair) -> float:
        """The probability; one half is the threshold."""
        logit = self.score(pair) - self._shift
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))

    def score(self, pair: Pair) -> float:
        """The logit, before the threshold is taken into account."""
        found = set(read_features(pair))
        total = sum(self._weights[feature] for feature in found)
        return total * self._scale / math.sqrt(max(1, len(found)))


def read_features(pair: Pair) -> Iterator[int]:
    """The buckets that a pair fills; some more than once."""
    own = pair.own
    for run in _runs(own):
        yield _bucket(f"o{run}")
    if pair.quotes:
        yield _bucket("quotes")
    if own.endswith(("?", "？", "؟")):
        yield _bucket("asks")
    last = (split_clauses(pair.before) or [""])[-1]
    short = len(own) < _SHORT
    yield _bucket(f"short {short} {bool(last)}")
    for word in set(_words(last)):
        yield _bucket(f"b{short}{word}")
        if short:
            yield from (_bucket(f"{said}|{word}") for said in set(_words(own)))


def _words(text: str) -> list[str]:
    return unicodedata.normalize("NFKC", text).casefold().split()


def _runs(text: str) -> Iterator[str]:
    for word in _words(text):
        marked = f"<{word}>"
        if len(marked) <= 5:
            yield marked
        for size in (3, 4, 5):
            for start in range(len(marked) - size + 1):
                yield marked[start : start + size]


def _bucket(name: str) -> int:
    return zlib.crc32(name.encode()) % BUCKETS
