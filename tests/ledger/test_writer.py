"""Recording never waits, whatever the database does; what was recorded is written."""

import asyncio
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest

from proxy.errors import ConfigError, Unavailable
from proxy.ledger.location import ledger_url, sqlite_path
from proxy.ledger.prices import Prices
from proxy.ledger.status import Options
from proxy.ledger.store import UsageQuery
from proxy.ledger.writer import SqlLedger
from proxy.settings import Price
from tests.fakes.lines import row, turn
from tests.fakes.until import until

pytestmark = pytest.mark.anyio

QUICK = Options(flush_seconds=0.01, close_seconds=5.0)


async def test_everything_that_was_recorded_is_there(url: str) -> None:
    """More than a batch, asked for at once."""
    ledger = SqlLedger(url, QUICK)
    await ledger.start()
    for number in range(5000):
        ledger.record(row(request_id=f"req_{number}"))
        ledger.record_turn(turn(request_id=f"req_{number}"))
    assert (await ledger.usage(UsageQuery(())))[0]["calls"] == 5000
    assert (await ledger.savings(UsageQuery(())))[0]["turns"] == 5000
    found = await ledger.timeline("req_4999", "acme")
    assert found is not None
    assert len(found["calls"]) == 1
    assert len(await ledger.requests("acme", 10)) == 10
    await ledger.aclose()
    assert (ledger.health.written, ledger.health.pending, ledger.health.dropped) == (10_000, 0, 0)


async def test_closing_writes_what_is_pending(url: str) -> None:
    """Also when the database was never opened before."""
    ledger = SqlLedger(url, Options(flush_seconds=60))
    ledger.record(row())
    ledger.record_turn(turn())
    await ledger.aclose()
    assert ledger.health.written == 2
    again = SqlLedger(url, QUICK)
    assert len(await again.requests("acme")) == 1
    await again.aclose()


async def test_an_unused_ledger_starts_no_thread(tmp_path: Path) -> None:
    """And loads no SQLAlchemy: that is what keeps the start short."""
    ledger = SqlLedger(ledger_url(None, tmp_path), QUICK)
    await ledger.start()
    assert "usher-ledger" not in {thread.name for thread in threading.enumerate()}
    await ledger.aclose()


async def test_rows_are_on_disk_after_the_flush_interval(tmp_path: Path) -> None:
    """Another process sees a row without anybody asking this one."""
    url = ledger_url(None, tmp_path)
    ledger = SqlLedger(url, QUICK)
    await ledger.usage(UsageQuery())
    ledger.record(row())
    await asyncio.sleep(0.5)
    with sqlite3.connect(tmp_path / "usher.db") as other:
        assert other.execute("SELECT count(*) FROM usher_calls").fetchone() == (1,)
    other.close()
    await ledger.aclose()


async def test_rows_without_a_price_get_one_on_the_writers_thread(tmp_path: Path) -> None:
    """A row recorded before the price table was read."""
    prices = Prices((Price(model="*", input=1.0),))
    options = Options(flush_seconds=0.01, price=prices.price)
    ledger = SqlLedger(ledger_url(None, tmp_path), options)
    ledger.record(row())
    (total,) = await ledger.usage(UsageQuery(()))
    assert total["cost_nano_usd"] == 1_000_000
    await ledger.aclose()


async def test_a_locked_database(tmp_path: Path) -> None:
    """Turns go on, the failure is counted, and all is written when the lock is gone."""
    url = ledger_url(None, tmp_path)
    ledger = SqlLedger(url, QUICK)
    await ledger.usage(UsageQuery())
    path = sqlite_path(url)
    assert path is not None
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    before = time.perf_counter()
    for _ in range(100):
        ledger.record(row())
    assert time.perf_counter() - before < 0.1
    await until(lambda: ledger.health.degraded is not None)
    assert "locked" in str(ledger.health.degraded)
    assert ledger.health.pending == 100
    holder.close()
    await ledger.aclose()
    after = ledger.health
    assert (after.written, after.dropped, after.degraded) == (100, 0, None)
    assert after.failures >= 1


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    """What a full disk is to one process, without needing a disk of our own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk(tmp_path: Path) -> None:
    """Rows wait for room, the newest are dropped and counted; with room again all is written."""
    options = Options(flush_seconds=0.01, queue_rows=500)
    ledger = SqlLedger(ledger_url(None, tmp_path), options)
    ledger.record(row())
    await ledger.usage(UsageQuery())
    with no_file_grows_beyond(200_000):
        for _ in range(50):
            for _ in range(20):
                ledger.record(row(detail={"padding": "x" * 4000}))
            await asyncio.sleep(0.002)
        await until(lambda: ledger.health.degraded is not None)
        health = ledger.health
        assert "disk" in str(health.degraded)
        assert health.dropped > 0
        assert health.written + health.pending + health.dropped == 1001
        began = time.perf_counter()
        (known,) = await ledger.usage(UsageQuery(()))
        assert time.perf_counter() - began < 5
        assert known["calls"] == ledger.health.written
        assert ledger.health.degraded is not None
    await ledger.aclose()
    after = ledger.health
    assert (after.degraded, after.written) == (None, 1001 - health.dropped)


async def test_a_database_that_cannot_work(tmp_path: Path) -> None:
    """One line at the start, before any turn."""
    blocker = tmp_path / "file"
    blocker.write_text("x")
    with pytest.raises(ConfigError, match=r"ledger\.url: cannot write"):
        await SqlLedger(ledger_url(None, blocker), QUICK).start()


async def test_a_server_that_is_away() -> None:
    """The start goes on; questions get a 503 with the reason; closing does not hang."""
    ledger = SqlLedger("postgresql+asyncpg://usher@127.0.0.1:1/x", Options(0.01, close_seconds=0.1))
    await ledger.start()
    ledger.record(row())
    await until(lambda: ledger.health.degraded is not None)
    assert "127.0.0.1" in str(ledger.health.degraded)
    await ledger.aclose()
    assert ledger.health.dropped == 1


async def test_a_server_that_refuses(postgres_url: str, tmp_path: Path) -> None:
    """A wrong database name is an error of the configuration."""
    with pytest.raises(ConfigError, match="does not exist"):
        await SqlLedger(ledger_url(f"{postgres_url}_nope", tmp_path), QUICK).start()


async def test_a_server_that_restarts(postgres_url: str, tmp_path: Path) -> None:
    """Connections that the server cut are made anew; every row is there once."""
    ledger = SqlLedger(ledger_url(postgres_url, tmp_path), QUICK)
    for number in range(100):
        ledger.record(row(request_id=f"req_{number}"))
        if number % 20 == 0:
            await ledger.usage(UsageQuery())
            own = await asyncpg.connect(postgres_url)
            await own.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            await own.close()
    assert (await ledger.usage(UsageQuery(())))[0]["calls"] == 100
    await ledger.aclose()


async def test_recording_after_the_end_does_nothing(tmp_path: Path) -> None:
    """A late line of background work is no exception."""
    ledger = SqlLedger(ledger_url(None, tmp_path), QUICK)
    ledger.record(row())
    await ledger.aclose()
    for _ in range(3000):
        ledger.record(row())


async def test_a_question_while_the_database_is_away() -> None:
    """Whoever asks is told why there is no answer."""
    options = Options(0.01, close_seconds=0.1, answer_seconds=0.3)
    ledger = SqlLedger("postgresql+asyncpg://usher@127.0.0.1:1/x", options)
    with pytest.raises(Unavailable, match="The ledger does not answer: "):
        await ledger.usage(UsageQuery())
    await ledger.aclose()


def test_importing_the_ledger_loads_no_sqlalchemy() -> None:
    """0.3 s of start-up and 30 MB that a gateway at rest does not need."""
    script = "import sys, proxy.ledger.priced; sys.exit('sqlalchemy' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
