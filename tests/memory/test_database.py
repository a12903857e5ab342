"""The database behind memories."""

import logging
import sqlite3
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

from proxy.errors import ConfigError, Unavailable
from proxy.memory.bank import Bank
from proxy.memory.change import Origin, Person, Store
from proxy.memory.database import FOLDER, HEAD, Database, memory_url
from proxy.memory.principal import Principal
from proxy.memory.schema import version

pytestmark = pytest.mark.anyio

ALI = Principal("t", "ali")


def test_where_memories_live() -> None:
    """In a file of their own, or where the operator says; a wrong URL names its setting."""
    assert memory_url(None, Path("/d")) == "sqlite+aiosqlite:////d/memory.db"
    assert memory_url("postgresql://h/d", Path("/d")) == "postgresql+asyncpg://h/d"
    with pytest.raises(ConfigError, match=r"memory\.url"):
        memory_url("mysql://h/d", Path("/d"))


async def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """An older Usher does not write into what a newer one has migrated."""
    bank = Bank(Database(memory_url(None, tmp_path)), 10)
    await bank.start()
    await bank.aclose()
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        found = connection.execute("SELECT version_num FROM usher_memory_version").fetchone()
        connection.execute("UPDATE usher_memory_version SET version_num = '9999'")
    connection.close()
    assert found == (HEAD,)
    newer = Bank(Database(memory_url(None, tmp_path)), 10)
    with pytest.raises(ConfigError, match="newer"):
        await newer.start()
    await newer.aclose()


async def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """Every failure is the same one line for callers."""
    (tmp_path / "file").touch()
    bank = Bank(Database(memory_url(None, tmp_path / "file")), 10)
    await bank.start()
    with pytest.raises(Unavailable, match="cannot be reached"):
        await bank.read(ALI)
    await bank.aclose()


async def test_no_value_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """At the most talkative level statements are written, their parameters are not."""
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "sqlalchemy.engine")
    bank = Bank(Database(memory_url(None, tmp_path)), 100)
    await bank.change(ALI, [Store("place", "The user hides in Xanadu.", 5)], Origin())
    await bank.read(ALI)
    await bank.aclose()
    assert "Xanadu" not in caplog.text


async def test_an_older_schema_is_brought_up_to_date(store_url: str) -> None:
    """What the first version wrote is still there, and people have made no new choices."""
    engine = create_async_engine(store_url)
    async with engine.begin() as connection:
        await connection.run_sync(_migrate_to, "0001")
        columns = '(tenant, "user", scope, enabled, writable, wipes, events)'
        row = (
            f"INSERT INTO usher_memory_people {columns} VALUES ('t', 'ali', '', true, false, 2, 0)"
        )
        await connection.execute(text(row))
    await engine.dispose()
    bank = Bank(Database(store_url), 100)
    await bank.start()
    person = (await bank.read(ALI)).person
    await bank.aclose()
    assert person == Person(enabled=True, writable=False, wipes=2)


def _migrate_to(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    config.attributes.update(connection=connection, version_table=version.name)
    command.upgrade(config, revision)
