"""Encoded lines in, one transaction per batch; result rows out. SQLite or PostgreSQL."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy
from sqlalchemy import Connection, Executable, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from proxy.errors import ConfigError
from proxy.ledger.encode import Encoded
from proxy.ledger.location import HEAD, check_version, public_url, sqlite_path
from proxy.ledger.schema import calls, turns, version

FAILURES = (SQLAlchemyError, OSError, TimeoutError)
"""What a database that is away, full, locked or read-only raises; later it may work again."""

_READERS = 2
_BUSY_SECONDS = 2.0
_CONNECT_SECONDS = 5.0
_LOCK = 0x75736865  # of the advisory locks, the one for migrations ("ushe")


class Database:
    """An open ledger database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._engine = _create_engine(url)
        self._inserts = {table: _insert(table, self._engine) for table in (calls, turns)}
        self._reading = asyncio.Semaphore(_READERS)

    async def migrate(self) -> None:
        """Bring the schema up to date; raises ConfigError when it is newer than this code."""
        async with self._engine.connect() as connection:
            await connection.run_sync(self._migrate)

    async def write(self, new_calls: Sequence[Encoded], new_turns: Sequence[Encoded]) -> None:
        """Write both or neither; lines that are already there are left as they are."""
        async with self._engine.begin() as connection:
            for table, lines in ((calls, new_calls), (turns, new_turns)):
                if lines:
                    await connection.exec_driver_sql(self._inserts[table], list(lines))

    async def read(self, statement: Executable) -> Sequence[Mapping[str, Any]]:
        """All rows of a query; never more than two at once, so that writing goes on."""
        async with self._reading, self._engine.connect() as connection:
            result = await connection.execute(statement)
            # Column keys are a subclass of str that JSON writers refuse.
            return [{str(key): value for key, value in row.items()} for row in result.mappings()]

    async def delete(self, statements: Sequence[Executable]) -> int:
        """Run each in a transaction of its own; the number of deleted lines."""
        deleted = 0
        for statement in statements:
            async with self._engine.begin() as connection:
                deleted += (await connection.execute(statement)).rowcount
        return deleted

    async def aclose(self) -> None:
        """Close all connections."""
        await self._engine.dispose()

    def _migrate(self, connection: Connection) -> None:
        _begin_alone(connection)
        found = _read_version(connection)
        check_version(public_url(self._url), found)
        if found != HEAD:
            from proxy.ledger.migrate import upgrade  # noqa: PLC0415 - 10 MB, once per schema

            upgrade(connection)
        connection.commit()


def _create_engine(url: str) -> AsyncEngine:
    path = sqlite_path(url)
    try:
        if path is None:
            arguments = {"timeout": _CONNECT_SECONDS, "command_timeout": 60}
            return create_async_engine(
                url, pool_size=1 + _READERS, max_overflow=0, pool_pre_ping=True,
                connect_args=arguments,
            )  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        engine = create_async_engine(
            url, pool_size=1 + _READERS, max_overflow=0, connect_args={"timeout": _BUSY_SECONDS}
        )
    except ImportError:
        raise _unusable(url, "PostgreSQL needs usher-gateway[postgres] installed") from None
    except (SQLAlchemyError, ValueError):  # their own texts repeat parts of the password
        raise _unusable(url, "not a URL; write @ : / in a password as %40 %3A %2F") from None
    sqlalchemy.event.listen(engine.sync_engine, "connect", _set_pragmas)
    return engine


def _unusable(url: str, reason: str) -> ConfigError:
    return ConfigError(f"ledger.url: {public_url(url)}: {reason}", param="ledger.url")


def _set_pragmas(connection: Any, _record: object) -> None:
    """WAL lets readers in while we write; NORMAL survives a kill without fsync, not a power cut."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()


def _insert(table: Table, engine: AsyncEngine) -> str:
    """The driver's own SQL: SQLAlchemy's per-row work would cost three times as much as the row."""
    build = postgresql.insert if engine.dialect.name == "postgresql" else sqlite.insert
    return str(build(table).on_conflict_do_nothing().compile(dialect=engine.dialect))


def _begin_alone(connection: Connection) -> None:
    """Several workers may start at once; one migrates, the others wait and find it done."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _read_version(connection: Connection) -> str | None:
    if not sqlalchemy.inspect(connection).has_table(version.name):
        return None
    return connection.scalar(sqlalchemy.select(version.c.version_num))
