"""Bodies of known length, read into the place where they stay."""

import asyncio
import gc
import weakref

import pytest

from proxy.edge.fill import Fill
from proxy.edge.watch import ClientGone

pytestmark = pytest.mark.anyio


class Reading:
    """A connection's protocol that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def body_came(self) -> None:
        self.told.append("came")

    def body_ended(self) -> None:
        self.told.append("ended")

    def eof_received(self) -> bool | None:
        self.told.append("eof")
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append("lost")

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")


def feed(fill: Fill, data: bytes) -> None:
    """Let the loop read: as much at a time as there is room for."""
    while data:
        room = fill.get_buffer(-1)
        step = min(len(room), len(data))
        room[:step] = data[:step]
        data = data[step:]
        fill.buffer_updated(step)


async def test_body_is_put_together_in_place() -> None:
    """What had begun and what follows are one body, and its end is told before it is handed out."""
    reader = Reading()
    fill = Fill(reader, asyncio.get_running_loop(), b"ab", 6)
    feed(fill, b"cd")
    assert reader.told == ["came"]
    assert len(fill.get_buffer(-1)) == 2
    feed(fill, b"ef")
    assert reader.told == ["came", "came", "ended"]
    assert await fill.wait() == b"abcdef"


async def test_client_that_leaves_is_gone() -> None:
    """The reader hears of the end of its connection, and whoever waits for the body too."""
    reader = Reading()
    fill = Fill(reader, asyncio.get_running_loop(), b"a", 5)
    assert fill.eof_received() is None
    fill.connection_lost(None)
    assert reader.told == ["eof", "lost"]
    with pytest.raises(ClientGone):
        async with asyncio.timeout(1):
            await fill.wait()


async def test_abandoned_body_is_freed_at_once() -> None:
    """What has come of it does not wait for a garbage collection, which is rare here."""

    async def read() -> "weakref.ref[Fill]":
        fill = Fill(Reading(), asyncio.get_running_loop(), b"a", 5)
        fill.connection_lost(None)
        with pytest.raises(ClientGone):
            await fill.wait()
        return weakref.ref(fill)

    gc.disable()
    try:
        assert (await read())() is None
    finally:
        gc.enable()


async def test_body_that_nobody_waits_for_is_read_to_its_end() -> None:
    """The next request on the connection begins where this one ends."""
    reader = Reading()
    fill = Fill(reader, asyncio.get_running_loop(), b"", 4)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await fill.wait()
    feed(fill, b"abcd")
    assert reader.told == ["came", "ended"]
    fill.connection_lost(None)


def test_back_pressure_is_the_readers() -> None:
    """Only reading is taken over."""
    reader = Reading()
    loop = asyncio.new_event_loop()
    fill = Fill(reader, loop, b"", 4)
    fill.pause_writing()
    fill.resume_writing()
    loop.close()
    assert reader.told == ["pause", "resume"]
