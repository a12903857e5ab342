"""Encoded lines in, one transaction per batch; result rows out. SQLAlchemy, for both kinds."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import sqlalchemy
from msgspec import Struct
from sqlalchemy import Connection, Executable, Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from proxy.errors import ConfigError
from proxy.ledger.backend import Failure, Lines, Refused, Rejected
from proxy.ledger.insert import insert_missing
from proxy.ledger.location import HEAD, check_version, public_url, sqlite_path
from proxy.ledger.reader import Reader
from proxy.ledger.schema import calls, turns, version
from proxy.ledger.store import Books
from proxy.ledger.usage import Row, TurnRow

_READERS = 2
_BUSY_SECONDS = 2.0
_CONNECT_SECONDS = 5.0
_KINDS: dict[Table, type[Struct]] = {calls: Row, turns: TurnRow}
_LOCK = 0x75736865  # of the advisory locks, the one for migrations ("ushe")


class Database:
    """An open ledger database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._engine = _create_engine(url)
        self._inserts = {table: _insert(table, self._engine) for table in _KINDS}
        self._reading = asyncio.Semaphore(_READERS)

    async def migrate(self) -> None:
        """Bring the schema up to date; raises ConfigError when it is newer than this code."""
        async with self._connect() as connection:
            await connection.run_sync(self._migrate)

    async def write(self, new_calls: Lines, new_turns: Lines) -> None:
        async with self._connect() as connection:
            for table, lines in ((calls, new_calls), (turns, new_turns)):
                if len(lines) > 0:
                    await connection.exec_driver_sql(self._inserts[table], list(lines))
            await connection.commit()

    async def read(self, statement: Executable) -> Sequence[Mapping[str, Any]]:
        """All rows of a query; never more than two at once, so that writing goes on."""
        async with self._reading, self._connect() as connection:
            result = await connection.execute(statement)
            names = list(map(str, result.keys()))  # some are a kind of str of its own
            return [dict(zip(names, row, strict=True)) for row in result]

    async def delete(self, statements: Sequence[str]) -> None:
        for statement in statements:
            async with self._connect() as connection:
                await connection.exec_driver_sql(statement)
                await connection.commit()

    async def books(self) -> Books:
        return Reader(self.read)

    async def aclose(self) -> None:
        await self._engine.dispose()

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[AsyncConnection]:
        """A connection; whatever goes wrong on it is a Failure."""
        try:
            async with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            if _blames_a_line(error):
                raise Rejected(f"ledger.url: {public_url(self._url)}: a line is wrong") from error
            raise Refused(describe_failure(self._url, error)) from error
        except (OSError, TimeoutError) as error:
            raise Failure(describe_failure(self._url, error)) from error

    def _migrate(self, connection: Connection) -> None:
        _begin_alone(connection)
        found = _read_version(connection)
        check_version(public_url(self._url), found)
        if found != HEAD:
            from proxy.ledger.migrate import upgrade  # noqa: PLC0415 - 10 MB, once per schema

            upgrade(connection)
        connection.commit()


async def open_database(url: str) -> Database:
    """An open database with the schema of this version; raises ConfigError or Failure."""
    database = Database(url)
    try:
        await database.migrate()
    except (ConfigError, Failure):
        await database.aclose()
        raise
    return database


def describe_failure(url: str, error: Exception) -> str:
    """One line without statements, parameters and passwords."""
    cause = getattr(error, "orig", None) or error
    # The asyncpg adapter puts the name of the driver's class in front.
    text = str(cause).partition("\n")[0].rpartition("'>: ")[2]
    return f"ledger.url: {public_url(url)}: {text or type(error).__name__}"


def _blames_a_line(error: SQLAlchemyError) -> bool:
    """Asyncpg finds some bad values before the server sees them, and calls that by its own name."""
    cause = getattr(getattr(error, "orig", None), "__cause__", None)
    return isinstance(error, IntegrityError | DataError) or type(cause).__name__ == "DataError"


def _create_engine(url: str) -> AsyncEngine:
    try:
        if sqlite_path(url) is None:
            arguments = {"timeout": _CONNECT_SECONDS, "command_timeout": 60}
            return create_async_engine(
                url,
                pool_size=1 + _READERS,
                max_overflow=0,
                pool_pre_ping=True,
                hide_parameters=True,
                connect_args=arguments,
            )
        return create_async_engine(
            url,
            pool_size=1 + _READERS,
            max_overflow=0,
            hide_parameters=True,
            connect_args={"timeout": _BUSY_SECONDS},
        )
    except ImportError:
        raise _unusable(url, "PostgreSQL needs usher-gateway[postgres] installed") from None
    except (SQLAlchemyError, ValueError):  # their own texts repeat parts of the password
        raise _unusable(url, "not a URL; write @ : / in a password as %40 %3A %2F") from None


def _unusable(url: str, reason: str) -> ConfigError:
    return ConfigError(f"ledger.url: {public_url(url)}: {reason}", param="ledger.url")


def _insert(table: Table, engine: AsyncEngine) -> str:
    """The driver's own SQL: SQLAlchemy's per-row work would cost three times as much as the row."""
    if engine.dialect.name != "postgresql":
        return insert_missing(table.name, _KINDS[table])
    insert = postgresql.insert(table).on_conflict_do_nothing()
    return str(insert.compile(dialect=engine.dialect))


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
