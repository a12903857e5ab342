"""A database of any older age becomes one of today; workers that start together do it once."""

import asyncio
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy
from alembic import command
from sqlalchemy import create_engine, inspect

from proxy.errors import ConfigError
from proxy.ledger.backend import Failure
from proxy.ledger.database import Database, open_database
from proxy.ledger.encode import Encoded, encode
from proxy.ledger.location import HEAD
from proxy.ledger.migrate import configuration, upgrade
from proxy.ledger.schema import version
from proxy.ledger.sqlitefile import SqliteFile
from tests.fakes.lines import row, turn

pytestmark = pytest.mark.anyio


def test_upgrade_makes_tables_and_notes_the_version() -> None:
    """Alembic's own table has a name that does not clash with another program's."""
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        upgrade(connection)
        assert set(inspect(connection).get_table_names()) == {
            "usher_calls",
            "usher_turns",
            "usher_version",
        }
        assert connection.scalar(sqlalchemy.select(version.c.version_num)) == HEAD
    engine.dispose()


async def test_workers_that_start_together(url: str) -> None:
    """One migrates, the others wait, all can write."""
    databases = await asyncio.gather(*(open_database(url) for _ in range(4)))
    for number, database in enumerate(databases):
        await database.write([encoded(number)], [])
        await database.aclose()


async def test_a_newer_schema_is_refused(url: str) -> None:
    """Also on a server, where the file probe cannot look."""
    database = await open_database(url)
    await database.delete(["UPDATE usher_version SET version_num = '9999'"])
    await database.aclose()
    with pytest.raises(ConfigError, match="newer Usher"):
        await open_database(url)


def encoded(writer: int) -> Encoded:
    return encode(row(), writer, 1)


async def test_opening_twice_migrates_once(url: str) -> None:
    """The second start finds everything done."""
    for _ in range(2):
        database = Database(url)
        await database.migrate()
        await database.aclose()


def make_old(path: Path) -> None:
    """A file of the first schema with three calls of two writers and a turn."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        command.upgrade(configuration(connection), "0001")
    engine.dispose()
    with sqlite3.connect(path) as old:
        for writer, line in ((9, 1), (7, 2), (7, 1)):
            values = encode(row(request_id=f"req_{line}", detail={"p": 0.5}), writer, line)
            old.execute(f"INSERT INTO usher_calls VALUES ({', '.join('?' * len(values))})", values)
        values = encode(turn(user=None), 7, 3)
        old.execute(f"INSERT INTO usher_turns VALUES ({', '.join('?' * len(values))})", values)
    old.close()


async def test_an_old_file_keeps_its_lines(tmp_path: Path) -> None:
    """Every value of every line, once, and the next ones go in."""
    path = tmp_path / "usher.db"
    make_old(path)
    backend = await SqliteFile.open(f"sqlite+aiosqlite:///{path}")
    await backend.write([encode(row(), 8, 1)], [encode(turn(), 8, 2)])
    await backend.aclose()
    with sqlite3.connect(path) as new:
        found = new.execute("SELECT * FROM usher_calls ORDER BY rowid").fetchall()
        assert found == [
            encode(row(request_id="req_1", detail={"p": 0.5}), 7, 1),
            encode(row(request_id="req_2", detail={"p": 0.5}), 7, 2),
            encode(row(request_id="req_1", detail={"p": 0.5}), 9, 1),
            encode(row(), 8, 1),
        ]
        lines = new.execute("SELECT * FROM usher_turns ORDER BY rowid").fetchall()
        assert lines == [encode(turn(user=None), 7, 3), encode(turn(), 8, 2)]
        assert new.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    new.close()


async def test_an_old_file_becomes_what_a_new_one_is(tmp_path: Path) -> None:
    """Tables, indexes and version; nothing of the old ones is left."""
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    make_old(old)
    made = []
    for path in (old, new):
        await (await SqliteFile.open(f"sqlite+aiosqlite:///{path}")).aclose()
        with sqlite3.connect(path) as file:
            found = file.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name")
            made.append((found.fetchall(), file.execute("SELECT * FROM usher_version").fetchall()))
        file.close()
    assert made[0] == made[1]


async def test_workers_that_upgrade_together(tmp_path: Path) -> None:
    """One copies the lines, the others wait."""
    path = tmp_path / "usher.db"
    make_old(path)
    url = f"sqlite+aiosqlite:///{path}"
    for backend in await asyncio.gather(*(SqliteFile.open(url) for _ in range(3))):
        await backend.aclose()
    with sqlite3.connect(path) as file:
        assert file.execute("SELECT count(*) FROM usher_calls").fetchone() == (3,)
    file.close()


async def test_an_upgrade_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    """It is one transaction: a disk that fills up, say, loses nothing."""
    path = tmp_path / "usher.db"
    make_old(path)
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE usher_turns_0001 (in_the_way INTEGER)")
        before = file.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    with pytest.raises(Failure):
        await SqliteFile.open(f"sqlite+aiosqlite:///{path}")
    assert file.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall() == before
    assert file.execute("SELECT count(*) FROM usher_calls").fetchone() == (3,)
    file.close()
