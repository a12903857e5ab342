"""Batches go in whole, once, on SQLite and on PostgreSQL alike."""

import asyncio
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy

from proxy.errors import ConfigError
from proxy.ledger.backend import Failure, Refused
from proxy.ledger.database import Database, describe_failure, open_database
from proxy.ledger.encode import encode
from proxy.ledger.location import ledger_url, sqlite_path
from proxy.ledger.schema import calls, turns
from tests.fakes.lines import row, turn

pytestmark = pytest.mark.anyio


async def count(database: Database, table: sqlalchemy.Table) -> int:
    found = await database.read(
        sqlalchemy.select(sqlalchemy.func.count().label("n")).select_from(table)
    )
    return int(found[0]["n"])


async def test_a_line_comes_back_as_it_was(url: str) -> None:
    """Every field of both kinds of line, with its nulls."""
    database = await open_database(url)
    call = encode(row(reasoning_tokens=None, detail={"a": 1}, estimated=True), 2**62, 1)
    whole = encode(turn(user=None, detail=None), 2**62, 2)
    await database.write([call], [whole])
    assert tuple((await database.read(sqlalchemy.select(calls)))[0].values()) == call
    assert tuple((await database.read(sqlalchemy.select(turns)))[0].values()) == whole
    await database.aclose()


async def test_a_batch_written_twice_is_there_once(url: str) -> None:
    """When the answer to a commit got lost the batch is simply written again."""
    database = await open_database(url)
    batch = [encode(row(), 7, number) for number in range(50)]
    await database.write(batch, [])
    await database.write([*batch[:25], encode(row(), 7, 50)], [])
    assert await count(database, calls) == 51
    await database.aclose()


async def test_a_batch_is_whole_or_absent(url: str) -> None:
    """One line that the database refuses takes the others of its batch with it."""
    database = await open_database(url)
    broken = (7, 2, 1, None, *encode(turn(), 7, 2)[4:])
    with pytest.raises(Failure):
        await database.write([encode(row(), 7, 1)], [broken])
    assert await count(database, calls) == 0
    await database.aclose()


async def test_readers_do_not_wait_for_a_writer(sqlite_url: str) -> None:
    """WAL: a question is answered while another process holds the write lock."""
    url = sqlite_url.replace("sqlite:", "sqlite+aiosqlite:")
    database = await open_database(url)
    await database.write([encode(row(), 7, 1)], [])
    path = sqlite_path(url)
    assert path is not None
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    async with asyncio.timeout(2):
        assert await count(database, calls) == 1
    holder.close()
    await database.aclose()


async def test_deleting(url: str) -> None:
    """Statements are the same for both kinds."""
    database = await open_database(url)
    await database.write([encode(row(), 7, number) for number in range(5)], [])
    await database.delete(["DELETE FROM usher_calls WHERE line >= 2"])
    assert await count(database, calls) == 2
    await database.aclose()


async def test_a_database_that_does_not_exist(postgres_url: str, tmp_path: Path) -> None:
    """The server's own words, without the password."""
    url = ledger_url(postgres_url.replace("usher@", "usher:secret@") + "_nope", tmp_path)
    with pytest.raises(Refused, match=r"ledger\.url: postgresql://usher@.*does not exist") as e:
        await open_database(url)
    assert "secret" not in str(e.value)


def test_failures_are_one_line() -> None:
    """Also those that say nothing themselves."""
    url = "sqlite:///x"
    assert describe_failure(url, TimeoutError()) == "ledger.url: sqlite:///x: TimeoutError"
    assert describe_failure(url, OSError("a\nb")) == "ledger.url: sqlite:///x: a"


@pytest.mark.parametrize("netloc", ["u:se@cr:et@h", "h:port"])
async def test_a_url_that_cannot_be_read(netloc: str) -> None:
    """A password with an unescaped @ is the classic; it is not repeated in the message."""
    with pytest.raises(ConfigError, match=r"ledger\.url: postgresql://.*: not a URL") as caught:
        Database(f"postgresql+asyncpg://{netloc}/d")
    assert "cr:et" not in caught.value.message
