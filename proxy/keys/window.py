"""Amounts and when they happened in; how much there was in the last minute out."""

from collections import deque

import msgspec

SECONDS = 60


class _Second(msgspec.Struct, gc=False):
    """When the last amount of a second came, and all of that second's."""

    last: float
    amount: int


class Window:
    """A sliding minute, kept by the second: never more than the limit in any 60 seconds.

    A second's amounts leave together, a minute after the last of them, so at most 61 entries are
    kept and nobody ever waits longer than a minute. Takes a monotonic clock; a clock that stands
    still or steps back counts into the newest second.
    """

    __slots__ = ("_ends", "_seconds", "total")

    def __init__(self) -> None:
        self._seconds: deque[_Second] = deque()
        """Oldest first."""
        self._ends = 0.0
        """When the newest second is over."""
        self.total = 0

    def move(self, now: float) -> None:
        """Forget what is older than a minute."""
        seconds = self._seconds
        while seconds and seconds[0].last + SECONDS <= now:
            self.total -= seconds.popleft().amount

    def add(self, now: float, amount: int) -> None:
        """Count something that happens now. Whoever reads `total` moves the window first."""
        self.total += amount
        if now < self._ends and self._seconds:
            newest = self._seconds[-1]
            newest.amount += amount
            if now > newest.last:  # noqa: PLR1730 - max() takes as long as all the rest
                newest.last = now
        else:
            self.move(now)
            self._seconds.append(_Second(now, amount))
            self._ends = int(now) + 1

    def seconds_until(self, now: float, most: int) -> float:
        """How long until there is at most so much left, if nothing is added."""
        surplus = self.total - most
        for second in self._seconds:
            if surplus <= 0:
                break
            surplus -= second.amount
            if surplus <= 0:
                return _left(second.last, now)
        return 0.0

    def seconds_until_empty(self, now: float) -> float:
        """How long until nothing is left, if nothing is added."""
        return _left(self._seconds[-1].last, now) if self._seconds else 0.0


def _left(last: float, now: float) -> float:
    """Until a minute after the last of a second's amounts, whatever a clock or rounding says."""
    left = last + SECONDS - now
    if 0.0 <= left <= SECONDS:
        return left
    return 0.0 if left < 0.0 else SECONDS
