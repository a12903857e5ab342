"""Work beside the answers is held, supervised and drained."""

import asyncio
import io

import pytest

from proxy.background import Background
from proxy.errors import UpstreamError
from proxy.observe.log import configure, silent
from proxy.settings import Log

pytestmark = pytest.mark.anyio


async def test_work_runs_and_is_drained() -> None:
    """What began before the end is finished before it."""
    background, done = Background(silent()), list[int]()

    async def work() -> None:
        await asyncio.sleep(0.01)
        done.append(1)

    assert background.spawn(work())
    await background.drain(5)
    assert done == [1]
    assert len(background) == 0


async def test_late_work_is_cancelled() -> None:
    """A stop does not wait for ever."""
    background = Background(silent())
    assert background.spawn(asyncio.sleep(3600))
    await background.drain(0.01)
    assert len(background) == 0


async def test_failures_are_logged_without_their_text() -> None:
    """One task's error stops no other, and its message may be private."""
    stream = io.StringIO()
    background = Background(configure(Log(format="json"), stream))

    async def fail(error: Exception) -> None:
        raise error

    background.spawn(fail(UpstreamError("private")))
    background.spawn(fail(KeyError("private")))
    await background.drain(5)
    await asyncio.sleep(0)
    assert "upstream_error" in stream.getvalue()
    assert "KeyError" in stream.getvalue()
    assert "private" not in stream.getvalue()


async def test_too_much_work_is_refused() -> None:
    """The queue is bounded."""
    background = Background(silent(), most=1)
    assert background.spawn(asyncio.sleep(3600))
    assert not background.spawn(asyncio.sleep(3600))
    await background.drain(0)
