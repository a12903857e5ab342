"""Seconds of work go in; pauses come out, so that long work leaves room for requests."""

from collections.abc import Callable

FREE_SECONDS = 10.0
"""Work that is not slowed down: an ordinary catalogue is done by then."""


class Pace:
    """Keeps one piece of work to a share of a core once it has taken a while."""

    def __init__(self, share: float, wait: Callable[[float], object]) -> None:
        self._share = share
        self._wait = wait
        self.seconds = 0.0

    def spend(self, seconds: float) -> None:
        """Counts work that was done, and waits as long as it takes to stay within the share."""
        self.seconds += seconds
        if self.seconds > FREE_SECONDS and self._share < 1.0:
            self._wait(seconds / self._share - seconds)
