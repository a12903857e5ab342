"""The writer's side keeps trying, and says when it gives up."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from proxy.ledger.backend import Backend
from proxy.ledger.location import ledger_url
from proxy.ledger.pump import Pump
from proxy.ledger.queue import Queue
from proxy.ledger.status import Options, Status
from proxy.ledger.store import UsageQuery
from tests.fakes.lines import row, turn
from tests.fakes.until import until

pytestmark = pytest.mark.anyio


class Rig:
    """A pump on the test's own loop."""

    def __init__(self, url: str, capacity: int = 100) -> None:
        self.queue = Queue(capacity, self.wake)
        self.status = Status()
        self.options = Options(flush_seconds=0.01)
        self.pump = Pump(url, self.queue, self.options, self.status)
        self.backend: asyncio.Future[Backend] = asyncio.get_running_loop().create_future()

    def wake(self) -> None:
        self.pump.wake()

    def close(self, seconds: float) -> None:
        self.status.deadline = time.monotonic() + seconds
        self.status.closing = True
        self.pump.wake()


async def test_it_writes_until_it_is_closed(tmp_path: Path) -> None:
    """What is in the queue at the end is written too."""
    rig = Rig(ledger_url(None, tmp_path))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(rig.pump.run(rig.backend.set_result))
        rig.queue.add_call(row())
        books = await (await rig.backend).books()
        await rig.pump.settle()
        assert [r["calls"] for r in await books.usage(UsageQuery(()))] == [1]
        rig.queue.add_call(row())
        rig.close(5)
    assert (rig.status.written, rig.status.failures) == (2, 0)


async def test_closing_before_the_database_could_be_opened() -> None:
    """After the deadline the lines are counted as lost, not silently gone."""
    rig = Rig("sqlite+aiosqlite:////dev/null/usher.db")
    rig.queue.add_call(row())
    rig.close(0)
    await rig.pump.run(rig.backend.set_result)
    assert (rig.queue.dropped, rig.status.written) == (1, 0)
    assert "/dev/null" in str(rig.status.degraded)


async def test_a_place_that_becomes_usable(tmp_path: Path) -> None:
    """The folder is mounted late: what waited is written."""
    blocker = tmp_path / "data"
    blocker.write_text("not a folder yet")
    rig = Rig(ledger_url(None, blocker))
    rig.queue.add_call(row())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(rig.pump.run(rig.backend.set_result))
        await until(lambda: rig.status.failures > 0)
        blocker.unlink()
        await rig.backend
        rig.close(5)
    assert (rig.status.written, rig.status.degraded) == (1, None)


async def test_a_recovery_is_told_once(tmp_path: Path) -> None:
    """As the failure was: an operator who was alarmed hears that it is over."""
    rig = Rig(ledger_url(None, tmp_path))
    with capture_logs() as lines:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(rig.pump.run(rig.backend.set_result))
            await rig.backend
            rig.status.failed("disk is full")
            for _ in range(2):
                rig.queue.add_call(row())
                await rig.pump.settle()
            rig.close(5)
    assert [line["event"] for line in lines] == ["ledger_recovered"]


async def test_a_line_that_no_database_takes(url: str) -> None:
    """It alone is lost and counted; the lines around it are written, and so are the next."""
    rig = Rig(url)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(rig.pump.run(rig.backend.set_result))
        nobody: Any = None
        for tenant in ("a", nobody, "b"):
            rig.queue.add_call(row(tenant=tenant))
            rig.queue.add_turn(turn(tenant=tenant))
        await rig.backend
        await rig.pump.settle()
        rig.queue.add_call(row())
        rig.close(5)
    assert (rig.status.written, rig.queue.dropped, rig.status.degraded) == (5, 2, None)


async def test_a_number_that_is_too_large(url: str) -> None:
    """An upstream that reports nonsense does not stop the books."""
    rig = Rig(url)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(rig.pump.run(rig.backend.set_result))
        rig.queue.add_call(row(prompt_tokens=2**70))
        rig.queue.add_call(row())
        await rig.backend
        rig.close(5)
    assert (rig.status.written, rig.queue.dropped) == (1, 1)


async def test_a_backlog_is_written_without_pauses(tmp_path: Path) -> None:
    """More than one batch, asked for in between."""
    rig = Rig(ledger_url(None, tmp_path), capacity=10_000)
    for _ in range(5000):
        rig.queue.add_call(row())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(rig.pump.run(rig.backend.set_result))
        await rig.backend
        await rig.pump.settle()
        assert rig.status.written == 5000
        rig.close(5)


async def test_what_is_too_old_leaves_at_the_start(tmp_path: Path) -> None:
    """Within the first round of the writer."""
    rig = Rig(ledger_url(None, tmp_path))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(rig.pump.run(rig.backend.set_result))
        rig.queue.add_call(row(started_at=0.0))
        rig.queue.add_call(row(started_at=time.time()))
        books = await (await rig.backend).books()
        await rig.pump.settle()
        await rig.pump.settle()
        assert [r["calls"] for r in await books.usage(UsageQuery(()))] == [1]
        rig.close(5)
