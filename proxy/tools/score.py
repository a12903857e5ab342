"""The shapes of a ranking: scores of all documents go in, the best hits come out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest

import msgspec


class Hit(msgspec.Struct, frozen=True):
    """A document that matches; `position` is its index in the catalogue."""

    position: int
    score: float


@dataclass(frozen=True, slots=True)
class Scores:
    """One query against every document.

    `coverage` is the share of the query's weight that the catalogue's words know; `closeness` is
    the best cosine of meaning, or None where only words were compared.
    """

    values: Sequence[float]
    coverage: float
    closeness: float | None = None


def select(
    values: Sequence[float],
    limit: int,
    twins: Mapping[int, int],
    leaders: Collection[int] = (),
) -> list[Hit]:
    """The best positive scores, ties in the catalogue's order; of identical tools the first.

    `leaders` are the positions of the highest scores where they are known already.
    """
    hits: list[Hit] = []
    seen: set[int] = set()
    wanted = limit + min(len(twins), limit + 8)
    for position in _best(values, wanted, leaders) if limit > 0 else ():
        original = twins.get(position, position)
        if original not in seen:
            seen.add(original)
            hits.append(Hit(position, values[position]))
    return hits[:limit]


def _best(values: Sequence[float], count: int, leaders: Collection[int]) -> list[int]:
    """Positions of the highest positive values, best first."""
    if len(leaders) >= count:
        return sorted(sorted(leaders), key=values.__getitem__, reverse=True)[:count]
    floor = max(values, default=0.0) / 8
    candidates = [at for at, value in enumerate(values) if value > floor]
    if len(candidates) < count:
        candidates = [at for at, value in enumerate(values) if value > 0.0]
    return nlargest(count, candidates, key=values.__getitem__)
