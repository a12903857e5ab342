"""A database of any older age becomes one of today; workers that start together do it once."""

import asyncio

import pytest
import sqlalchemy
from sqlalchemy import create_engine, inspect

from proxy.errors import ConfigError
from proxy.ledger.database import Database, open_database
from proxy.ledger.encode import Encoded, encode
from proxy.ledger.location import HEAD
from proxy.ledger.migrate import upgrade
from proxy.ledger.schema import version
from tests.fakes.lines import row

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
