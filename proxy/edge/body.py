"""A request's body comes in, in pieces and maybe compressed; bytes within the cap go out."""

import asyncio
import io
import zlib
from collections.abc import Callable, Mapping

import brotli
import zstandard
from starlette.types import Receive, Scope

from proxy.edge.intake import Connection
from proxy.edge.lump import lump_of
from proxy.edge.watch import ClientGone
from proxy.errors import BadRequest, BodyTooLarge, UnsupportedEncoding

MAX_CODINGS = 3
ZSTD_WINDOW = 8 * 1024 * 1024
"""The largest window that zstd as a content coding may use (RFC 9659 §3)."""
STEP = 1024 * 1024


async def read_body(
    receive: Receive, length: int | None, cap: int, connection: Connection | None = None
) -> bytes:
    """Collect a body, from its connection where that is known, which takes less copying.

    Raises BodyTooLarge, at once when its length is announced, or ClientGone.
    """
    if length is not None and length > cap:
        raise too_large(cap)
    pieces: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(piece)
        if size > cap:
            raise too_large(cap)
        pieces.append(piece)
        if more and connection is not None:
            body = await connection.read_rest(piece, length, cap)
            if len(body) > cap:
                raise too_large(cap)
            return body
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def take_body(scope: Scope, cap: int) -> bytes | None:
    """The body, when our own server has read all of it; else it has to be received.

    Raises BodyTooLarge.
    """
    lump = lump_of(scope)
    body = None if lump is None else lump.take_body()
    if body is not None and len(body) > cap:
        raise too_large(cap)
    return body


async def decode_body(body: bytes, encoding: bytes, cap: int) -> bytes:
    """Undo content codings, in a thread because a small body may unpack to the whole cap.

    Raises UnsupportedEncoding, BodyTooLarge as soon as the cap is passed, BadRequest when broken.
    """
    decoders = find_decoders(encoding)
    return await asyncio.to_thread(_decode, body, decoders, cap) if decoders else body


def find_decoders(encoding: bytes) -> list[str]:
    """The codings to undo, in that order. Raises UnsupportedEncoding."""
    names = [name.strip() for name in encoding.decode("latin-1").lower().split(",")]
    codings = [name for name in reversed(names) if name not in {"", "identity"}]
    if len(codings) > MAX_CODINGS or not all(name in DECODERS for name in codings):
        raise UnsupportedEncoding(
            "The request body's content encoding is not supported; use gzip, deflate, br or zstd."
        )
    return codings


def too_large(cap: int) -> BodyTooLarge:
    return BodyTooLarge(f"The request body is larger than {cap} bytes (server.max_body_bytes).")


def _decode(body: bytes, codings: list[str], cap: int) -> bytes:
    for name in codings:
        try:
            body = DECODERS[name](body, cap)
        except (zlib.error, brotli.error, zstandard.ZstdError, EOFError):
            raise BadRequest(f"The request body is not valid {name}.") from None
    return body


def _gunzip(body: bytes, cap: int) -> bytes:
    pieces: list[bytes] = []
    room = cap
    while body.strip(b"\0"):  # several members in a row are one body, padding is none
        member, body = _inflate(body, zlib.MAX_WBITS | 16, room)
        pieces.append(member)
        room -= len(member)
        if room < 0:
            raise too_large(cap)
    return b"".join(pieces)


def _undeflate(body: bytes, cap: int) -> bytes:
    try:
        decoded, _ = _inflate(body, zlib.MAX_WBITS, cap)
    except zlib.error:
        # Some clients have always sent it without the zlib wrapper.
        decoded, _ = _inflate(body, -zlib.MAX_WBITS, cap)
    if len(decoded) > cap:
        raise too_large(cap)
    return decoded


def _inflate(body: bytes, wbits: int, room: int) -> tuple[bytes, bytes]:
    """One member, at most a byte more than there is room for, and what follows it."""
    decoder = zlib.decompressobj(wbits)
    decoded = decoder.decompress(body, room + 1)
    if not decoder.eof and len(decoded) <= room:
        raise EOFError
    return decoded, decoder.unused_data


def _unbrotli(body: bytes, cap: int) -> bytes:
    decoder = brotli.Decompressor()
    pieces: list[bytes] = []
    size = 0
    while not decoder.is_finished():
        piece = decoder.process(b"" if pieces else body, output_buffer_limit=STEP)
        if not piece and pieces:
            raise EOFError
        size += len(piece)
        if size > cap:
            raise too_large(cap)
        pieces.append(piece)
    return b"".join(pieces)


def _unzstd(body: bytes, cap: int) -> bytes:
    decoder = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
    pieces: list[bytes] = []
    size = 0
    with decoder.stream_reader(io.BytesIO(body), read_across_frames=True) as reader:
        while piece := reader.read(STEP):
            size += len(piece)
            if size > cap:
                raise too_large(cap)
            pieces.append(piece)
    return b"".join(pieces)


DECODERS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
