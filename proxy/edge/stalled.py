"""Open connections come in, every few seconds; those whose clients do not go on are closed.

A look at all of them costs less than a timer for each, and nothing per request.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from weakref import WeakKeyDictionary

from proxy.edge.protocol import Protocol

_log = logging.getLogger(__name__)
LOOK_SECONDS = 5.0


class Stalled:
    """Since when each connection has been waiting for its client; `seconds` are how long it may."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: WeakKeyDictionary[Protocol, tuple[object, float]] = WeakKeyDictionary()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, connections: Collection[object]) -> None:
        """Look again and again until `stop`; on the event loop's thread."""
        pause = min(LOOK_SECONDS, self._seconds / 4)
        self._timer = asyncio.get_running_loop().call_later(pause, self.watch, connections)
        closed = self.look(connections)
        if closed:
            _log.warning("Closed %d connections whose clients did not go on.", closed)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def look(self, connections: Collection[object]) -> int:
        """Close those that have waited for too long; how many they were."""
        now, closed = self._clock(), 0
        for connection in list(connections):
            if not isinstance(connection, Protocol):
                continue
            wanted = connection.wanted
            before = self._since.get(connection)
            if wanted is None:
                self._since.pop(connection, None)
            elif before is None or before[0] != wanted:
                self._since[connection] = wanted, now
            elif now - before[1] >= self._seconds:
                connection.give_up()
                closed += 1
        return closed
