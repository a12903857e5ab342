"""Chunks pass through; how they ended goes out once, even when nobody began to read them."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from proxy.errors import UsherError

End = Callable[[str], Awaitable[None]]
"""Hears "ok", the code of an error, or "client_gone"."""


class Watched:
    """An iterator of chunks with an end that is always heard of.

    A generator that was never begun runs none of its `finally`, so a client that leaves between
    the head and the body would otherwise leave an upstream running and no row in the ledger.
    """

    def __init__(self, chunks: AsyncGenerator[bytes], end: End) -> None:
        self._chunks = chunks
        self._end = end
        self._ended = False

    def __aiter__(self) -> "Watched":
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except StopAsyncIteration:
            await self._finish("ok")
            raise
        except UsherError as error:
            await self._finish(error.code or "failed")
            raise
        except asyncio.CancelledError:
            await self._finish("client_gone")
            raise

    async def aclose(self) -> None:
        """Ends the iteration; the second and later calls do nothing."""
        await self._chunks.aclose()
        await self._finish("client_gone")

    async def _finish(self, outcome: str) -> None:
        if not self._ended:
            self._ended = True
            await self._end(outcome)
