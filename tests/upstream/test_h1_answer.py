"""An answer between its connection and its reader."""

import asyncio

import pytest

from proxy.errors import StreamTruncated
from proxy.upstream.h1_answer import HIGH_BYTES, Answer

pytestmark = pytest.mark.anyio


class Line:
    """A connection that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def pause(self) -> None:
        self.told.append("pause")

    def resume(self) -> None:
        self.told.append("resume")

    def abort(self) -> None:
        self.told.append("abort")


async def test_slow_reader_holds_the_upstream_back() -> None:
    """More than a quarter megabyte unread pauses the connection, reading on resumes it."""
    line = Line()
    answer = Answer(200, [], line)
    for _ in range(5):
        answer.feed(b"x" * (HIGH_BYTES // 4))
    assert line.told == ["pause"]
    for _ in range(3):
        await anext(answer)
    assert line.told == ["pause", "resume"]


async def test_what_came_before_a_failure_can_be_read() -> None:
    """The error follows the last piece."""
    answer = Answer(200, [], Line())
    answer.feed(b"a")
    answer.fail(StreamTruncated("cut"))
    assert await anext(answer) == b"a"
    with pytest.raises(StreamTruncated):
        await anext(answer)


async def test_whole_answer_leaves_its_connection_alone() -> None:
    """After the end the connection is another request's."""
    line = Line()
    answer = Answer(200, [], line)
    answer.feed(b"a")
    answer.end()
    await answer.aclose()
    assert line.told == []


async def test_unread_answer_disconnects() -> None:
    """Letting go of a running answer, or giving up waiting for it, stops the upstream."""
    line = Line()
    waiting = asyncio.get_running_loop().create_task(Answer(200, [], line).read())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert line.told == ["abort"]
