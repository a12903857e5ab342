"""Request bodies: collected and decoded, never beyond the cap."""

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard

from proxy.edge.body import decode_body, read_body
from proxy.edge.watch import ClientGone
from proxy.errors import BadRequest, BodyTooLarge, UnsupportedEncoding
from tests.edge.driver import Client, FakeTurn, Rig, exchange, read_response, running

pytestmark = pytest.mark.anyio

TEXT = b'{"messages":[{"role":"user","content":"hello"}]}' * 50
MEGABYTE = 1024 * 1024


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


PACKERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", _raw_deflate),
    ("br", brotli.compress),
    ("zstd", _zstd),
]


async def test_pieces_become_one_body() -> None:
    """A body that arrives in pieces is whole afterwards."""
    assert await read_body(Client(b"ab", b"", b"cd").receive, None, 100) == b"abcd"


async def test_announced_size_is_refused_at_once() -> None:
    """A Content-Length over the cap is refused before a byte is read."""
    client = Client(b"never read")
    with pytest.raises(BodyTooLarge):
        await read_body(client.receive, 101, 100)
    assert (await client.receive())["body"] == b"never read"


async def test_unannounced_size_is_refused_at_the_cap() -> None:
    """A chunked body is refused as soon as it passes the cap, not at its end."""
    client = Client(b"x" * 60, b"x" * 60, b"never read")
    with pytest.raises(BodyTooLarge):
        await read_body(client.receive, None, 100)
    assert (await client.receive())["body"] == b"never read"


async def test_body_of_exactly_the_cap_is_read() -> None:
    """The cap itself is allowed."""
    assert len(await read_body(Client(b"x" * 50, b"x" * 50).receive, 100, 100)) == 100


async def test_client_that_leaves_half_way_is_gone() -> None:
    """A cut upload is not taken for a body."""
    client = Client(b"half", cut=True)
    client.leave()
    with pytest.raises(ClientGone):
        await read_body(client.receive, 100, 1000)


@pytest.mark.parametrize(("name", "pack"), PACKERS)
async def test_codings_are_undone(name: str, pack: Callable[[bytes], bytes]) -> None:
    """Every coding that SDKs use is decoded to the bytes that were meant."""
    assert await decode_body(pack(TEXT), name.encode(), len(TEXT)) == TEXT


@pytest.mark.parametrize(("name", "pack"), PACKERS)
async def test_large_bodies_are_undone(name: str, pack: Callable[[bytes], bytes]) -> None:
    """A body of several megabytes comes out whole."""
    text = TEXT * 1500
    assert await decode_body(pack(text), name.encode(), len(text)) == text


@pytest.mark.parametrize(("name", "pack"), PACKERS)
async def test_bombs_stop_at_the_cap(name: str, pack: Callable[[bytes], bytes]) -> None:
    """A small body that unpacks to 16 MiB is refused without unpacking it."""
    bomb = pack(bytes(16 * MEGABYTE))
    tracemalloc.start()
    with pytest.raises(BodyTooLarge):
        await decode_body(bomb, name.encode(), MEGABYTE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * MEGABYTE


@pytest.mark.parametrize(("name", "pack"), PACKERS)
async def test_broken_codings_are_a_clear_refusal(
    name: str, pack: Callable[[bytes], bytes]
) -> None:
    """Bytes that are not of the announced coding are a 400 that says so."""
    with pytest.raises(BadRequest, match=f"not valid {name}"):
        await decode_body(b"\xff\xfe{}" + pack(TEXT), name.encode(), MEGABYTE)


@pytest.mark.parametrize(("name", "pack"), PACKERS[:-1])
async def test_cut_codings_are_a_clear_refusal(name: str, pack: Callable[[bytes], bytes]) -> None:
    """A compressed body without its end is refused instead of forwarded in part."""
    with pytest.raises(BadRequest, match=f"not valid {name}"):
        await decode_body(pack(TEXT)[:-9], name.encode(), MEGABYTE)


async def test_several_members_are_one_body() -> None:
    """With gzip and zstd there may be several members in a row, with gzip padding behind them."""
    packed = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0"
    assert await decode_body(packed, b"gzip", 100) == b"one two"
    assert await decode_body(_zstd(b"one ") + _zstd(b"two"), b"zstd", 100) == b"one two"


async def test_cap_counts_all_members() -> None:
    """Many small members cannot add up to more than the cap."""
    with pytest.raises(BodyTooLarge):
        await decode_body(gzip.compress(b"x" * 60) * 2, b"gzip", 100)


async def test_codings_are_undone_in_reverse() -> None:
    """A list of codings is undone from its end."""
    assert await decode_body(brotli.compress(gzip.compress(TEXT)), b"gzip, br", 9999) == TEXT


@pytest.mark.parametrize("encoding", [b"", b"identity", b" Identity , "])
async def test_identity_is_no_coding(encoding: bytes) -> None:
    """A body that says that it is not encoded stays as it is."""
    assert await decode_body(TEXT, encoding, 1) == TEXT


@pytest.mark.parametrize("encoding", [b"compress", b"gzip, snappy", b"gzip,gzip,gzip,gzip"])
async def test_unknown_codings_are_refused(encoding: bytes) -> None:
    """A coding that nobody can undo, and a suspicious pile of them, are a 415."""
    with pytest.raises(UnsupportedEncoding):
        await decode_body(TEXT, encoding, MEGABYTE)


class Connected:
    """A connection whose rest of the body is known."""

    def __init__(self, rest: bytes) -> None:
        self.rest = rest
        self.told: tuple[int | None, int] | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    async def read_rest(self, begun: bytes, length: int | None, cap: int) -> bytes:
        self.told = length, cap
        return begun + self.rest

    def watch(self, on_lost: Callable[[], None] | None) -> None:
        """Nobody leaves here."""


async def test_rest_of_a_body_comes_from_its_connection() -> None:
    """The first message and what the connection collects are one body."""
    connection = Connected(b"cdef")
    client = Client(b"ab", b"never read")
    assert await read_body(client.receive, 6, 100, connection) == b"abcdef"
    assert connection.told == (6, 100)


async def test_rest_over_the_cap_is_refused() -> None:
    """A connection stops collecting at the cap, and the body is not taken for whole."""
    with pytest.raises(BodyTooLarge):
        await read_body(Client(b"ab", b"").receive, None, 5, Connected(b"cdef"))


PATH = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"


async def test_large_bodies_arrive_whole_however_they_are_sent() -> None:
    """Bytes that drip, pieces of any size, a second request right behind: nothing is mixed up."""
    turn = FakeTurn()
    body = bytes(range(256)) * 4000
    head = PATH + b"Content-Length: %d\r\n\r\n" % len(body)
    async with running(Rig(turn.chat)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for step in (70_000, 300_000, len(body)):
            writer.write(head + body[:10])
            for start in range(10, len(body), step):
                await asyncio.sleep(0)
                writer.write(body[start : start + step])
                await writer.drain()
            assert (await read_response(reader)).startswith(b"HTTP/1.1 200 ")
        writer.write((head + body) * 2)
        for _ in range(2):
            assert (await read_response(reader)).startswith(b"HTTP/1.1 200 ")
        writer.close()
    assert [asked.body for asked in turn.asked] == [body] * 5


async def test_body_of_unknown_length_arrives_whole() -> None:
    """Chunks of any size are one body, and a request of known length follows on the connection."""
    turn = FakeTurn()
    body = bytes(range(256)) * 2000
    chunks = [body[at : at + 70_001] for at in range(0, len(body), 70_001)]
    async with running(Rig(turn.chat)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(PATH + b"Transfer-Encoding: chunked\r\n\r\n")
        for chunk in chunks:
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        assert (await read_response(reader)).startswith(b"HTTP/1.1 200 ")
        writer.write(PATH + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert (await read_response(reader)).startswith(b"HTTP/1.1 200 ")
        writer.close()
    assert [asked.body for asked in turn.asked] == [body] * 2


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 300000\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 300000\r\n",
        b"Content-Length: 300000\r\nContent-Length: 400000\r\n",
    ],
)
async def test_body_of_two_lengths_is_refused(framing: bytes) -> None:
    """Whoever reads one length and forwards the other lets requests be smuggled."""
    turn = FakeTurn()
    async with running(Rig(turn.chat)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(PATH + framing + b"\r\n" + b"x" * 400_000)
        answer = await reader.read(12)
        writer.transport.abort()
    assert answer == b"HTTP/1.1 400"
    assert not turn.asked


async def test_client_that_leaves_inside_a_large_body_is_let_go() -> None:
    """Nobody answers, nothing hangs, and the next client is served."""
    turn = FakeTurn()
    async with running(Rig(turn.chat)) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(PATH + b"Content-Length: 1000000\r\n\r\n" + b"x" * 500_000)
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.transport.abort()
        answer = await exchange(port, PATH + b"Content-Length: 2\r\n\r\n{}")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert [asked.body for asked in turn.asked] == [b"{}"]


async def test_endless_upload_is_refused_while_it_arrives() -> None:
    """A chunked body without an end meets the cap, not the memory."""
    rig = Rig(FakeTurn().chat, overrides={"server": {"max_body_bytes": 300_000}})
    async with running(rig) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(PATH + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(8):
            writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
        answer = await read_response(reader)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 413 ")
