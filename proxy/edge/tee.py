"""Copies of a reply's bytes come in while they pass by; the usage that it states goes out."""

import asyncio

from proxy.edge.body import decode_body
from proxy.errors import UsherError
from proxy.stream.meter import Meter
from proxy.wire import Headers, JSONObject

MAX_ENCODED = 4 * 1024 * 1024
MAX_DECODED = 32 * 1024 * 1024
SLOW_BYTES = 256 * 1024
"""From this size on a reply is read in a thread: parsing it would hold up the event loop."""


class Tee:
    """Keeps what is needed to find the usage later; costs an append per chunk."""

    def __init__(self, headers: Headers) -> None:
        fields = {name.lower(): value for name, value in headers}
        self._type = fields.get(b"content-type", b"").lower()
        self._encoding = fields.get(b"content-encoding", b"")
        self._meter = Meter(self._type)
        self._encoded: list[bytes] = []
        self._bytes = 0

    def feed(self, chunk: bytes) -> None:
        self._bytes += len(chunk)
        if not self._encoding:
            self._meter.feed(chunk)
        elif self._bytes <= MAX_ENCODED:
            self._encoded.append(chunk)
        else:
            self._encoded.clear()

    async def read(self) -> tuple[JSONObject | None, str | None]:
        """The usage object and the model, as far as a complete reply states them."""
        if self._encoding and not await self._decode():
            return None, None
        if self._bytes < SLOW_BYTES:
            return self._meter.read()
        return await asyncio.to_thread(self._meter.read)

    async def _decode(self) -> bool:
        if not self._encoded or b"json" not in self._type:
            return False
        try:
            body = await decode_body(b"".join(self._encoded), self._encoding, MAX_DECODED)
        except UsherError:
            return False
        self._meter.feed(body)
        self._bytes = len(body)
        return True
