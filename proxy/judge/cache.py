"""Answers kept for a while: the same question about the same state need not be paid twice."""

import time
from collections import OrderedDict
from collections.abc import Callable

from proxy.judge.reading import Reading


class AnswerCache:
    """The newest readings by key; a key holds the tenant, so nobody sees another's."""

    def __init__(
        self, seconds: float, entries: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._entries = entries
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, Reading]] = OrderedDict()

    def get(self, key: str) -> Reading | None:
        """What was answered, unless it is too old."""
        found = self._kept.get(key)
        if found is None:
            return None
        until, reading = found
        if self._clock() >= until:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return reading

    def put(self, key: str, reading: Reading) -> None:
        """Keep a complete reading; the one unused for longest makes room."""
        if not self._entries or not self._seconds:
            return
        self._kept[key] = (self._clock() + self._seconds, reading)
        self._kept.move_to_end(key)
        if len(self._kept) > self._entries:
            self._kept.popitem(last=False)
