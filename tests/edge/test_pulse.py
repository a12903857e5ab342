"""Keep-alive lines: when a stream pauses, and never inside a frame."""

import asyncio

import pytest

from proxy.edge.pulse import PING, Pulse
from tests.fakes.until import until

pytestmark = pytest.mark.anyio

FRAME = b"data: {}\n\n"


class Sink:
    """Keeps what is written; with `slow` set, writing waits for `unblock`."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.unblock = asyncio.Event()
        self.unblock.set()

    async def write(self, chunk: bytes) -> None:
        await self.unblock.wait()
        self.written.append(chunk)


async def test_silence_is_filled() -> None:
    """A stream that pauses gets a ping after each interval of silence."""
    sink = Sink()
    pulse = Pulse(sink.write, 0.02)
    await pulse.write(FRAME)
    await until(lambda: len(sink.written) == 3)
    pulse.stop()
    assert sink.written == [FRAME, PING, PING]


async def test_silence_before_the_first_chunk_is_filled() -> None:
    """Waiting for the first frame is silence like any other."""
    sink = Sink()
    pulse = Pulse(sink.write, 0.02)
    await until(lambda: sink.written == [PING])
    await pulse.write(FRAME)
    pulse.stop()
    assert sink.written == [PING, FRAME]


async def test_busy_stream_gets_no_pings() -> None:
    """As long as frames come more often than the interval nothing is added."""
    sink = Sink()
    pulse = Pulse(sink.write, 0.3)
    for _ in range(20):
        await pulse.write(FRAME)
        await asyncio.sleep(0.02)
    pulse.stop()
    assert sink.written == [FRAME] * 20


@pytest.mark.item("stream/keep-alive")
@pytest.mark.parametrize("half", [b"data: {", b"data: {}\n", b"data: {}\r\n"])
async def test_frames_are_not_split(half: bytes) -> None:
    """A pause inside a frame stays silent: a ping would become part of it."""
    sink = Sink()
    pulse = Pulse(sink.write, 0.02)
    await pulse.write(half)
    await asyncio.sleep(0.06)
    pulse.stop()
    assert sink.written == [half]


@pytest.mark.parametrize("frame", [b"data: 1\n\n", b"data: 1\r\n\r\n", b"data: 1\r\r"])
async def test_every_line_ending_ends_a_frame(frame: bytes) -> None:
    """LF, CRLF and CR upstreams get their pings."""
    sink = Sink()
    pulse = Pulse(sink.write, 0.02)
    await pulse.write(frame)
    await until(lambda: sink.written == [frame, PING])
    pulse.stop()


async def test_client_that_does_not_read_gets_no_pings() -> None:
    """Pings do not pile up behind a chunk that the client does not take."""
    sink = Sink()
    sink.unblock.clear()
    pulse = Pulse(sink.write, 0.01)
    async with asyncio.TaskGroup() as group:
        group.create_task(pulse.write(FRAME))
        await asyncio.sleep(0.05)
        sink.unblock.set()
    pulse.stop()
    assert sink.written == [FRAME]


async def test_chunk_waits_for_a_ping_that_is_being_written() -> None:
    """A ping on its way is never overtaken: the frame behind it could be half."""
    sink = Sink()
    sink.unblock.clear()
    pulse = Pulse(sink.write, 0.01)
    await asyncio.sleep(0.02)
    async with asyncio.TaskGroup() as group:
        group.create_task(pulse.write(b"data: {"))
        await asyncio.sleep(0.01)
        sink.unblock.set()
    pulse.stop()
    assert sink.written == [PING, b"data: {"]


async def test_stopped_pulse_is_silent() -> None:
    """After the stream's end nothing is written."""
    sink = Sink()
    Pulse(sink.write, 0.01).stop()
    await asyncio.sleep(0.03)
    assert sink.written == []
