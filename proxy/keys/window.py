"""Amounts and when they happened in; how much there was in the last minute out."""

from collections import deque

SECONDS = 60


class Window:
    """A sliding minute, kept by the second: never more than the limit in any 60 seconds.

    A second's amounts leave together, a minute after the last of them, so at most 61 entries are
    kept and nobody ever waits longer than a minute. Takes a monotonic clock; a clock that stands
    still or steps back counts into the newest second.
    """

    __slots__ = ("_seconds", "total")

    def __init__(self) -> None:
        self._seconds: deque[tuple[float, int]] = deque()
        """When the last amount of a second came, and all of that second's; oldest first."""
        self.total = 0

    def move(self, now: float) -> None:
        """Forget what is older than a minute."""
        seconds = self._seconds
        while seconds and seconds[0][0] + SECONDS <= now:
            self.total -= seconds.popleft()[1]

    def add(self, now: float, amount: int) -> None:
        """Count something that happens now."""
        self.move(now)
        self.total += amount
        if self._seconds:
            last, before = self._seconds[-1]
            if now < int(last) + 1:
                self._seconds[-1] = (max(last, now), before + amount)
                return
        self._seconds.append((now, amount))

    def seconds_until(self, now: float, most: int) -> float:
        """How long until there is at most so much left, if nothing is added."""
        surplus = self.total - most
        for last, amount in self._seconds:
            if surplus <= 0:
                break
            surplus -= amount
            if surplus <= 0:
                return _left(last, now)
        return 0.0

    def seconds_until_empty(self, now: float) -> float:
        """How long until nothing is left, if nothing is added."""
        return _left(self._seconds[-1][0], now) if self._seconds else 0.0


def _left(last: float, now: float) -> float:
    """Until a minute after the last of a second's amounts, whatever a clock or rounding says."""
    return min(max(0.0, last + SECONDS - now), SECONDS)
