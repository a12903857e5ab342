"""Ranked ids and the ids that were wanted go in; the usual figures of retrieval come out."""

import math
from collections.abc import Iterable, Sequence

Gold = Sequence[frozenset[str]]
"""One slot per needed tool; a slot is met by any of its ids."""


def recall_at(ranked: Sequence[str], gold: Gold, depth: int) -> float:
    """The share of slots that the first `depth` ids meet."""
    top = set(ranked[:depth])
    return sum(not slot.isdisjoint(top) for slot in gold) / len(gold)


def reciprocal_rank(ranked: Sequence[str], gold: Gold) -> float:
    """One over the place of the first id that meets any slot."""
    wanted = frozenset().union(*gold)
    return next((1 / place for place, found in enumerate(ranked, 1) if found in wanted), 0.0)


def gain_at(ranked: Sequence[str], gold: Gold, depth: int) -> float:
    """Normalised discounted cumulative gain; every slot counts once, at its first id."""
    open_slots = list(gold)
    gain = 0.0
    for place, found in enumerate(ranked[:depth], 1):
        met = [slot for slot in open_slots if found in slot]
        open_slots = [slot for slot in open_slots if found not in slot]
        gain += bool(met) / math.log2(place + 1)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(len(gold), depth) + 1))
    return gain / ideal


def mean(values: Iterable[float]) -> float:
    """The mean, rounded to four places; zero for none."""
    collected = list(values)
    return round(sum(collected) / len(collected), 4) if collected else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie; zero for none."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0
