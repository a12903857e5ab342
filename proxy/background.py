"""Work that no client waits for comes in; it runs supervised, and is drained at the end."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from structlog.typing import FilteringBoundLogger

from proxy.errors import UsherError


class Background:
    """Tasks that outlive the request that began them.

    Each is held until it ends, so none is lost, and one that fails takes no other with it. More
    than `most` at once are refused: what is not worth waiting for is not worth a full memory.
    """

    def __init__(self, log: FilteringBoundLogger, most: int = 1_000) -> None:
        self._log = log
        self._most = most
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        """Begins some work on the running loop; False when too much of it is under way."""
        if len(self._tasks) >= self._most:
            work.close()
            self._log.warning("background_full", tasks=len(self._tasks))
            return False
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return True

    async def drain(self, seconds: float) -> None:
        """Waits for what is under way, for so long; then cancels the rest."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            code = error.code if isinstance(error, UsherError) else type(error).__name__
            self._log.error("background_failed", code=code)
