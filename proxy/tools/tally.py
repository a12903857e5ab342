"""The terms of a query and where they occur go in; scores of the documents come out."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

import msgspec

from proxy.tools.postings import Posting

LEADING = 0.45
"""Documents of more than this share of the best score are its leaders."""
SLACK = 1.0 - 1e-9
"""Room for the rounding of sums that are added up in another order."""


Places = Mapping[int, float]
"""Positions of documents, each with a gain or a share."""


class Share(msgspec.Struct, frozen=True, gc=False):
    """A term: `worth` is what a weight of 1 in its posting adds to a score.

    `names` are the shares of the names that it stands for, of which `said` counts.
    """

    posting: Posting
    worth: float
    names: Places
    said: float


class Tally:
    """Adds up one query; terms come rarest first.

    `extra` are fixed gains, `cover` is the gain of a document whose whole name was said.
    """

    def __init__(self, terms: Sequence[Share], extra: Sequence[Places], cover: float) -> None:
        self._terms = terms
        self._extra = extra
        self._cover = cover
        self._named = 1.0 + cover

    def add_up(self, size: int) -> list[float]:
        """The score of each of `size` documents."""
        values = [0.0] * size
        cover: dict[int, float] = {}
        for own in self._terms:
            worth, said = own.worth, own.said
            for position, weight in own.posting.weights.items():
                values[position] += worth * weight
            for position, share in own.names.items():
                cover[position] = cover.get(position, 0.0) + share * said
        for position, share in cover.items():
            values[position] *= 1.0 + self._cover * share
        for gains in self._extra:
            for position, gain in gains.items():
                values[position] += gain
        return values

    def find_leaders(self, values: Sequence[float]) -> set[int]:
        """The leaders among scores from `add_up`.

        Once the terms that are left cannot make a leader, their documents are not looked at.
        """
        columns: list[Places] = list(self._extra)
        top = max((values[position] for own in columns for position in own), default=0.0)
        for own, rest in zip(self._terms, self._find_rests(), strict=True):
            if rest <= LEADING * SLACK * top:
                break
            columns.append(own.posting.weights)
            best = max(map(values.__getitem__, own.posting.weights))
            top = max(top, best)
        floor = LEADING * top
        return {position for own in columns for position in own if values[position] > floor}

    def _find_rests(self) -> list[float]:
        """For each place: the most that the terms from there on add to one score."""
        most = [own.worth * own.posting.most * self._named for own in self._terms[::-1]]
        return list(accumulate(most))[::-1]
