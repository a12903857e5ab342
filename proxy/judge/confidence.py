"""Probabilities in; how sure they are, out."""

import math
from collections.abc import Sequence

HALF_UNIT = 0.005
"""Decision models print two decimals, so each probability may be off by half a unit."""


def choice_confidence(probabilities: Sequence[float]) -> float:
    """0 for a uniform guess, 1 for certainty: (p_max - 1/n) / (1 - 1/n), TypeSafe's formula."""
    count = len(probabilities)
    if count < 2:
        return 1.0
    uniform = 1 / count
    return clamp((max(probabilities) - uniform) / (1 - uniform))


def score_confidence(probabilities: Sequence[float]) -> float:
    """1 - E|level - mode| over the mean distance of a uniform guess, TypeSafe's formula."""
    count = len(probabilities)
    if count < 2:
        return 1.0
    mode = max(range(count), key=lambda level: probabilities[level])
    spread = sum(p * abs(level - mode) for level, p in enumerate(probabilities))
    middle = (count - 1) / 2
    uniform = sum(abs(level - middle) for level in range(count)) / count
    return clamp(1 - spread / uniform)


def expected_level(probabilities: Sequence[float]) -> float:
    """The score: the probability-weighted level."""
    return sum(level * p for level, p in enumerate(probabilities))


def sums_to_one(probabilities: Sequence[float], half_unit: float = HALF_UNIT) -> bool:
    """Whether a distribution can be one after rounding each value by at most `half_unit`."""
    total = math.fsum(probabilities)
    printed = len(probabilities) - probabilities.count(0)
    over, under = printed * half_unit + 1e-6, len(probabilities) * half_unit + 1e-6
    return 0 < total <= 1 + over and total >= 1 - under


def settle(probabilities: Sequence[float], half_unit: float = HALF_UNIT) -> list[float]:
    """Make a rounded distribution sum to one.

    Missing mass belongs first to the values that were rounded to nothing, at most half a unit
    each: 255 options at 0.30 + 254 x 0.00 mean 0.30, not 1.00. The rest, and mass that is too much,
    is spread evenly, as rounding did it: no value moves by more than half a unit.
    """
    settled = list(probabilities)
    missing = 1 - math.fsum(settled)
    zeros = settled.count(0)
    if zeros and missing > 0:
        share = min(half_unit, missing / zeros)
        settled = [p or share for p in settled]
        missing -= zeros * share
    elif missing < 0:
        missing = -_take(settled, -missing)
    printed = len(settled) - zeros
    if missing > 0 and printed:
        share = missing / printed
        settled = [p + share if was else p for p, was in zip(settled, probabilities, strict=True)]
    total = math.fsum(settled)
    return [p / total for p in settled]


def _take(settled: list[float], surplus: float) -> float:
    """Takes the surplus from all values evenly, from none more than it has; what is left of it."""
    order = sorted(range(len(settled)), key=settled.__getitem__)
    for rank, position in enumerate(order):
        share = min(settled[position], surplus / (len(order) - rank))
        settled[position] -= share
        surplus -= share
    return surplus


def clamp(value: float) -> float:
    """The value within 0 and 1."""
    return min(1.0, max(0.0, value))
