"""The terms of a query and where they occur go in; scores of the documents come out."""

from bisect import bisect
from collections.abc import Mapping, Sequence
from itertools import accumulate

from proxy.tools.postings import Posting

LEADING = 0.45
"""Documents of more than this share of the best score are its leaders."""
SLACK = 1.0 - 1e-9
"""Room for the rounding of sums that are added up in another order."""

Places = Mapping[int, float]
"""Positions of documents, each with a gain or a share."""
Share = tuple[Posting, float]
"""A term and its weight in the query."""


class Tally:
    """Adds up one query; terms come rarest first.

    `extra` are fixed gains, `cover` is the gain of a document whose whole name was said.
    """

    def __init__(self, terms: Sequence[Share], extra: Sequence[Places], cover: float) -> None:
        self._terms = terms
        self._extra = extra
        self._cover = cover

    def add_up(self, size: int) -> list[float]:
        """The score of each of `size` documents."""
        values = [0.0] * size
        said: dict[int, float] = {}
        for posting, weight in self._terms:
            worth = weight * posting.rarity
            for position, share in posting.weights.items():
                values[position] = worth * share + values[position]
            if posting.names:
                most = min(weight, 1.0)
                for position, share in posting.names.items():
                    said[position] = most * share + said.get(position, 0.0)
        cover = self._cover
        for position, share in said.items():
            values[position] = (1.0 + cover * share) * values[position]
        for gains in self._extra:
            for position, gain in gains.items():
                values[position] += gain
        return values

    def find_leaders(self, values: Sequence[float]) -> set[int]:
        """The leaders among scores from `add_up`.

        A document of the term that is worth most sets how much a leader has at least; whoever has
        only terms that cannot add up to that is not looked at.
        """
        columns = list(self._extra)
        worths = [weight * own.rarity * own.most for own, weight in self._terms]
        floor = 0.0
        if worths:
            main, _ = self._terms[worths.index(max(worths))]
            floor = LEADING * max(map(values.__getitem__, main.weights))
            rests = list(accumulate(reversed(worths)))
            idle = bisect(rests, SLACK * floor / (1.0 + self._cover))
            columns += [own.weights for own, _ in self._terms[: len(worths) - idle]]
        found = [at for own in columns for at in own if values[at] > floor]
        floor = LEADING * max(map(values.__getitem__, found), default=0.0)
        return {at for at in found if values[at] > floor}
