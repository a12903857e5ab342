"""The watch: work ends when its client leaves."""

import asyncio
import time
from collections.abc import Callable

import pytest

from proxy.edge.watch import ClientGone, Watch
from tests.edge.driver import Client

pytestmark = pytest.mark.anyio


async def test_work_ends_when_the_client_leaves() -> None:
    """Waiting for an upstream is cancelled well within a second of the client's leaving."""
    client = Client()
    asyncio.get_running_loop().call_later(0.05, client.leave)
    began = time.monotonic()
    with Watch(client.receive, asyncio.get_running_loop()) as watch:
        watch.start()
        await asyncio.sleep(30)
    assert watch.gone
    assert time.monotonic() - began < 0.9


async def test_leaving_is_no_cancellation_of_the_caller() -> None:
    """After the block the task goes on as if it had never been cancelled."""
    client = Client()
    client.leave()
    with Watch(client.receive, asyncio.get_running_loop()) as watch:
        watch.start()
        await asyncio.sleep(30)
    async with asyncio.timeout(1):
        await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_quick_work_starts_no_task() -> None:
    """Work that ends quickly never asks the connection anything."""

    async def receive() -> dict[str, object]:
        raise AssertionError("nobody should listen yet")

    with Watch(receive, asyncio.get_running_loop()) as watch:
        watch.start()
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    assert not watch.gone


async def test_leaving_after_the_work_changes_nothing() -> None:
    """Once the block is left nothing listens any more."""
    client = Client()
    with Watch(client.receive, asyncio.get_running_loop()) as watch:
        watch.start()
        await asyncio.sleep(0.3)
    client.leave()
    await asyncio.sleep(0.01)
    assert not watch.gone


async def test_foreign_cancellation_passes() -> None:
    """Cancellation by somebody else is not taken for the client's leaving."""

    async def work() -> None:
        with Watch(Client().receive, asyncio.get_running_loop()) as watch:
            watch.start()
            await asyncio.sleep(30)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await work()


async def test_failures_pass() -> None:
    """An error of the work is the caller's to see."""
    with (
        pytest.raises(ValueError, match="broken"),
        Watch(Client().receive, asyncio.get_running_loop()),
    ):
        raise ValueError("broken")


async def test_cut_upload_counts_as_leaving() -> None:
    """A client that leaves inside its own upload ends the block, too."""
    with Watch(Client().receive, asyncio.get_running_loop()) as watch:
        raise ClientGone
    assert watch.gone


class Line:
    """A connection that can tell."""

    def __init__(self, *, lost: bool = False) -> None:
        self.calls: list[Callable[[], None] | None] = []
        self.lost = lost

    def watch(self, on_lost: Callable[[], None] | None) -> None:
        self.calls.append(on_lost)
        if self.lost and on_lost is not None:
            on_lost()


async def test_a_connection_that_tells_is_not_asked() -> None:
    """Work ends as the client leaves, without a timer or a task that waits for it."""
    line = Line()
    with Watch(Client().receive, asyncio.get_running_loop(), line.watch) as watch:
        watch.start()
        assert line.calls[0] is not None
        asyncio.get_running_loop().call_later(0.01, line.calls[0])
        async with asyncio.timeout(5):
            await asyncio.sleep(30)
    assert watch.gone
    assert line.calls[1:] == [None]


async def test_a_client_that_has_gone_already() -> None:
    """It left while its body was read."""
    with Watch(Client().receive, asyncio.get_running_loop(), Line(lost=True).watch) as watch:
        watch.start()
        await asyncio.sleep(30)
    assert watch.gone


async def test_a_watch_that_was_stopped_leaves_the_connection_alone() -> None:
    """The next request on it is watched by then."""
    line = Line()
    with Watch(Client().receive, asyncio.get_running_loop(), line.watch) as watch:
        watch.start()
        watch.stop()
    assert len(line.calls) == 2
