"""The ledger in a file, written without SQLAlchemy and read with it."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import create_engine

from proxy.errors import ConfigError
from proxy.ledger.backend import Failure
from proxy.ledger.encode import encode
from proxy.ledger.location import HEAD
from proxy.ledger.migrate import render_sqlite, upgrade
from proxy.ledger.retention import delete_old
from proxy.ledger.sqlitefile import SCHEMA, SqliteFile
from proxy.ledger.store import UsageQuery
from tests.fakes.lines import NOON, row, turn

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "usher.db"


@pytest.fixture
def file_url(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


def test_a_new_file_gets_what_the_migrations_make() -> None:
    """Made again by writing render_sqlite() of a migrated database to migrations/sqlite.sql."""
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        upgrade(connection)
        assert render_sqlite(connection) == SCHEMA.read_text()
    engine.dispose()


async def test_lines_are_written_once_and_can_be_asked_for(file_url: str) -> None:
    """A batch that is written again leaves no second copy."""
    backend = await SqliteFile.open(file_url)
    for _ in range(2):
        await backend.write([encode(row(), 7, 1)], [encode(turn(), 7, 2)])
    books = await backend.books()
    assert [found["calls"] for found in await books.usage(UsageQuery(()))] == [1]
    assert await books.timeline("req_1", "acme") is not None
    assert await backend.books() is not None
    await backend.aclose()


async def test_what_is_unknown_is_null(file_url: str, path: Path) -> None:
    """It has a way into SQLite of its own, by which it must not become anything else."""
    backend = await SqliteFile.open(file_url)
    await backend.write([encode(row(user=None, cost_nano_usd=None, detail=None), 7, 1)], [])
    await backend.aclose()
    with sqlite3.connect(path) as file:
        found = file.execute("SELECT user, cost_nano_usd, detail, tenant FROM usher_calls")
        assert found.fetchall() == [(None, None, None, "acme")]
    file.close()


@pytest.mark.parametrize("lines", [31, 32, 33, 70])
async def test_batches_of_any_size_are_written_whole(file_url: str, lines: int) -> None:
    """Many lines go into one statement; those left over are not forgotten."""
    backend = await SqliteFile.open(file_url)
    written = [encode(row(request_id=f"req_{number}"), 7, number) for number in range(lines)]
    await backend.write(written, [])
    await backend.write(written, [])
    books = await backend.books()
    assert [found["calls"] for found in await books.usage(UsageQuery(()))] == [lines]
    assert await books.timeline(f"req_{lines - 1}", "acme") is not None
    await backend.aclose()


async def test_a_batch_is_whole_or_absent(file_url: str) -> None:
    """One line that is refused takes its batch with it, and the next batch goes in."""
    backend = await SqliteFile.open(file_url)
    broken = (7, 2, 1, None, *encode(turn(), 7, 2)[4:])
    with pytest.raises(Failure, match=r"ledger\.url: sqlite:///.*a line is wrong"):
        await backend.write([encode(row(), 7, 1)], [broken])
    await backend.write([encode(row(), 7, 3)], [])
    (total,) = await (await backend.books()).usage(UsageQuery(()))
    assert total["calls"] == 1
    await backend.aclose()


async def test_an_older_file_is_handed_to_the_migrations(file_url: str, path: Path) -> None:
    """They know no version before the first, and say so."""
    path.parent.mkdir()
    with sqlite3.connect(path) as old:
        old.execute("CREATE TABLE usher_version (version_num VARCHAR(32) NOT NULL)")
        old.execute("INSERT INTO usher_version VALUES ('0000')")
    old.close()
    with pytest.raises(ConfigError, match=r"the schema is not Usher's: .*'0000'"):
        await SqliteFile.open(file_url)


async def test_a_newer_file_is_refused(file_url: str) -> None:
    """It was made by an upgrade that was taken back."""
    backend = await SqliteFile.open(file_url)
    await backend.delete(["UPDATE usher_version SET version_num = '9999'"])
    await backend.aclose()
    with pytest.raises(ConfigError, match="newer Usher"):
        await SqliteFile.open(file_url)


async def test_old_lines_leave(file_url: str) -> None:
    """By age."""
    backend = await SqliteFile.open(file_url)
    await backend.write([encode(row(), 7, 1), encode(row(started_at=NOON + 9), 7, 2)], [])
    await backend.delete(delete_old(NOON + 1, None))
    (total,) = await (await backend.books()).usage(UsageQuery(()))
    assert total["calls"] == 1
    await backend.aclose()


async def test_a_folder_that_cannot_be_made() -> None:
    """Failures of the disk are failures, not bugs."""
    with pytest.raises(Failure, match=r"ledger\.url: sqlite:////dev/null/usher\.db: "):
        await SqliteFile.open("sqlite+aiosqlite:////dev/null/usher.db")


def test_writing_loads_no_sqlalchemy(file_url: str) -> None:
    """25 MB and 0.3 s that a gateway at work does not need."""
    script = (
        "import asyncio, sys; from proxy.ledger.writer import SqlLedger; "
        "from proxy.ledger.status import Options; from tests.fakes.lines import row\n"
        "async def main():\n"
        f"    ledger = SqlLedger({file_url!r}, Options())\n"
        "    await ledger.start(); ledger.record(row()); await ledger.aclose()\n"
        "    assert ledger.health.written == 1\n"
        "asyncio.run(main()); sys.exit('sqlalchemy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_version_in_the_schema_is_the_newest() -> None:
    """So that a new file is not migrated a second later."""
    assert f"VALUES ('{HEAD}')" in SCHEMA.read_text()
    assert msgspec.structs.fields(type(row()))
