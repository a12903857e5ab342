"""A client's connection comes in; the task that works for it is cancelled when the client goes."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TypeAlias

from starlette.types import Receive

PATIENCE = 0.25
"""Seconds before watching starts: a shorter request costs no task of its own."""

Tell: TypeAlias = Callable[[Callable[[], None] | None], None]
"""Takes whom to call when the client goes, or None for nobody any more."""


class ClientGone(Exception):
    """The client closed the connection, so nobody is left to answer."""


class Watch:
    """Around the work for a request: the block is left when the client leaves.

    That is done by cancellation, which is caught here; after the block `gone` tells about it. A
    connection that can `tell` is not asked.
    """

    __slots__ = ("_loop", "_receive", "_task", "_tell", "_timer", "_watcher", "gone")

    def __init__(
        self, receive: Receive, loop: asyncio.AbstractEventLoop, tell: Tell | None = None
    ) -> None:
        self._receive = receive
        self._tell = tell
        self._loop = loop
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._watcher: asyncio.Task[None] | None = None
        self.gone = False

    def __enter__(self) -> "Watch":
        self._task = asyncio.current_task(self._loop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        self.stop()
        if kind is ClientGone:
            self.gone = True
            return True
        if not (self.gone and kind is asyncio.CancelledError):
            return False
        if self._task is not None:
            self._task.uncancel()
        return True

    def start(self) -> None:
        """Begin to watch; from now on nobody else may receive."""
        if self._tell is not None:
            self._tell(self._leave)
        else:
            self._timer = self._loop.call_later(PATIENCE, self._begin)

    def stop(self) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:  # once: the connection may have its next request already
            tell(None)
        if self._timer is not None:
            self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

    def _begin(self) -> None:
        # Not bare: it is held here, and ends with the block.
        self._watcher = self._loop.create_task(self._wait())

    async def _wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        self.gone = True
        if self._task is not None:
            self._task.cancel()
