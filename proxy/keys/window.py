"""Amounts and when they happened in; how much there was in the last minute out."""

SECONDS = 60
_SLOTS = SECONDS + 1  # the second that is running and the 60 before it


class Window:
    """A sliding minute in slots of a second: never more than the limit in any 60 seconds.

    Constant memory and time. Takes a monotonic clock; a clock that stands still or steps back
    counts into the newest slot.
    """

    __slots__ = ("_counts", "_newest", "_used", "total")

    def __init__(self) -> None:
        self._counts = [0] * _SLOTS
        self._newest = 0
        self._used = 0
        self.total = 0

    def move(self, now: float) -> None:
        """Forget what is older than a minute."""
        second = int(now)
        passed = second - self._newest
        if passed <= 0:
            return
        self._newest = second
        if passed >= _SLOTS or self.total == 0:
            self._counts = [0] * _SLOTS
            self.total = 0
            return
        for forgotten in range(second - passed + 1, second + 1):
            slot = forgotten % _SLOTS
            self.total -= self._counts[slot]
            self._counts[slot] = 0

    def add(self, now: float, amount: int) -> None:
        """Count something that happens now."""
        self.move(now)
        self._counts[self._newest % _SLOTS] += amount
        self._used = self._newest
        self.total += amount

    def seconds_until(self, now: float, most: int) -> float:
        """How long until there is at most so much left, if nothing is added."""
        surplus = self.total - most
        second = self._newest - SECONDS
        while surplus > 0 and second <= self._newest:
            surplus -= self._counts[second % _SLOTS]
            if surplus <= 0:
                return max(0.0, second + _SLOTS - now)
            second += 1
        return 0.0

    def seconds_until_empty(self, now: float) -> float:
        """How long until nothing is left, if nothing is added."""
        return max(0.0, self._used + _SLOTS - now) if self.total else 0.0
