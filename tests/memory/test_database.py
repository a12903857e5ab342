"""The database behind memories."""

import logging
import sqlite3
from pathlib import Path

import pytest

from proxy.errors import ConfigError, Unavailable
from proxy.memory.bank import Bank
from proxy.memory.change import Origin, Store
from proxy.memory.database import HEAD, Database, memory_url
from proxy.memory.principal import Principal

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
