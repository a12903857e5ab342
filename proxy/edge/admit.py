"""Requests come in and leave; whether more may enter, and when the last has left, goes out."""

import asyncio

from proxy.errors import Unavailable

RETRY_SECONDS = 1.0


class Gate:
    """Counts the requests that are being answered and turns new ones away while draining."""

    __slots__ = ("_empty", "draining", "inside")

    def __init__(self) -> None:
        self.inside = 0
        self.draining = False
        self._empty = asyncio.Event()

    def enter(self) -> None:
        """Let a request in. Raises Unavailable while the gateway stops."""
        if self.draining:
            raise Unavailable("The gateway is shutting down.", retry_after=RETRY_SECONDS)
        self.inside += 1

    def leave(self) -> None:
        self.inside -= 1
        if self.draining and not self.inside:
            self._empty.set()

    async def drain(self, seconds: float) -> None:
        """Let nobody in and wait for the last to leave, for so long, or until `rush`."""
        self.draining = True
        if not self.inside:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            return

    def rush(self) -> None:
        """Wait no longer."""
        self._empty.set()
