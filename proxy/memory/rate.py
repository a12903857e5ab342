"""Runs of somebody come in, one by one; whether another may start goes out."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable

from proxy.memory.principal import Principal

MOST_PEOPLE = 10_000
_MINUTE = 60.0


class Rate:
    """So many runs a minute for each person, in this process."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._runs: OrderedDict[Principal, deque[float]] = OrderedDict()

    def allow(self, whose: Principal) -> bool:
        """Whether one more may run now; if so, it is counted."""
        now = self._clock()
        runs = self._runs.setdefault(whose, deque())
        self._runs.move_to_end(whose)
        if len(self._runs) > MOST_PEOPLE:
            self._runs.popitem(last=False)
        while runs and runs[0] <= now - _MINUTE:
            runs.popleft()
        if len(runs) >= self._most:
            return False
        runs.append(now)
        return True
