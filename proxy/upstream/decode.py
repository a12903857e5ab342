"""A response whose body may be compressed comes in; the same response in plain bytes goes out."""

import zlib
from collections.abc import AsyncIterator
from typing import Protocol

import brotli
import zstandard

from proxy.errors import StreamTruncated, UpstreamError
from proxy.upstream.transport import UpstreamResponse
from proxy.wire import Headers


class _Decoder(Protocol):
    def feed(self, chunk: bytes) -> bytes: ...

    @property
    def whole(self) -> bool:
        """Whether the end of what was encoded has come."""


class _Zlib:
    def __init__(self, window: int) -> None:
        self._inner = zlib.decompressobj(window)

    def feed(self, chunk: bytes) -> bytes:
        return self._inner.decompress(chunk)

    @property
    def whole(self) -> bool:
        return self._inner.eof


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()

    def feed(self, chunk: bytes) -> bytes:
        plain: bytes = self._inner.process(chunk)
        return plain

    @property
    def whole(self) -> bool:
        finished: bool = self._inner.is_finished()
        return finished


class _Zstd:
    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor().decompressobj()

    def feed(self, chunk: bytes) -> bytes:
        return self._inner.decompress(chunk)

    @property
    def whole(self) -> bool:
        return self._inner.eof


class Decoded:
    """A response read through its decoders; the headers no longer claim an encoding."""

    def __init__(self, inner: UpstreamResponse, decoders: list[_Decoder]) -> None:
        self._inner = inner
        self._decoders = decoders
        self._fed = False
        self.status = inner.status
        self.headers: Headers = [
            (name, value)
            for name, value in inner.headers
            if name.lower() not in (b"content-encoding", b"content-length")
        ]

    async def chunks(self) -> AsyncIterator[bytes]:
        """Plain bytes, per socket read. Raises UpstreamError when they are not what they claim."""
        async for chunk in self._inner.chunks():
            plain = self._decode(chunk)
            if plain:
                yield plain
        self._check_end()

    async def read(self) -> bytes:
        """The rest of the body in plain bytes. Raises StreamTruncated when its end is missing."""
        plain = self._decode(await self._inner.read())
        self._check_end()
        return plain

    async def aclose(self) -> None:
        """Lets go of the response."""
        await self._inner.aclose()

    def _check_end(self) -> None:
        """A body may be whole on the wire and cut before it was put there."""
        if self._fed and not all(decoder.whole for decoder in self._decoders):
            raise StreamTruncated("the upstream's answer ended before its encoding did")

    def _decode(self, chunk: bytes) -> bytes:
        self._fed = self._fed or bool(chunk)
        try:
            for decoder in self._decoders:
                chunk = decoder.feed(chunk)
        except (zlib.error, brotli.error, zstandard.ZstdError) as error:
            raise UpstreamError("the upstream's body is not in its stated encoding") from error
        return chunk


def decode_response(response: UpstreamResponse) -> UpstreamResponse:
    """The response itself when it is plain, as asked; else one that decodes.

    Raises UpstreamError for an encoding that was neither asked for nor is known.
    """
    stated = b",".join(v for n, v in response.headers if n.lower() == b"content-encoding")
    codings = [coding.strip().lower() for coding in stated.split(b",")]
    wanted = [coding for coding in codings if coding not in (b"", b"identity")]
    if not wanted:
        return response
    return Decoded(response, [_make_decoder(coding) for coding in reversed(wanted)])


def _make_decoder(coding: bytes) -> _Decoder:
    if coding in (b"gzip", b"x-gzip"):
        return _Zlib(zlib.MAX_WBITS | 16)
    if coding == b"deflate":
        return _Zlib(zlib.MAX_WBITS)
    if coding == b"br":
        return _Brotli()
    if coding == b"zstd":
        return _Zstd()
    raise UpstreamError("the upstream answered in an encoding that Usher cannot read")
