"""A response passes through untouched; the signatures in it are told to whoever notes them."""

from collections.abc import AsyncIterator, Awaitable, Callable

from proxy.triage.signed import scan_seals
from proxy.upstream.transport import UpstreamResponse
from proxy.wire import Headers

MOST_KEPT = 256 * 1024
_HINTS = (b"signature", b'"data"')


class Heard:
    """A response that is listened to.

    A signature is noted before the client can have it. One that is cut by the chunks is put
    together again; one that is missed all the same is unknown later, and its block is left out.
    """

    def __init__(
        self, response: UpstreamResponse, note: Callable[[bytes], Awaitable[None]]
    ) -> None:
        self._response = response
        self._note = note
        self._rest = b""

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Headers:
        return self._response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.chunks():
            await self._listen(chunk)
            yield chunk

    async def read(self) -> bytes:
        body = await self._response.read()
        await self._tell(body)
        return body

    async def aclose(self) -> None:
        await self._response.aclose()

    async def _listen(self, chunk: bytes) -> None:
        """Looks at whole lines; what is left of the last one waits for the next chunk."""
        data = self._rest + chunk
        end = data.rfind(b"\n") + 1
        await self._tell(data[:end] if end else data)
        self._rest = data[end:] if len(data) - end <= MOST_KEPT else b""

    async def _tell(self, data: bytes) -> None:
        if any(hint in data for hint in _HINTS):
            for seal in scan_seals(data):
                await self._note(seal)
