"""A URL comes in; transactions on a database with the schema of this version go out."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import sqlalchemy
import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from proxy.errors import ConfigError, Unavailable
from proxy.ledger.location import ledger_url, public_url, sqlite_path
from proxy.memory.principal import Principal
from proxy.memory.schema import version

HEAD = "0002"
"""The newest of `proxy/memory/migrations`."""
FOLDER = Path(__file__).with_name("migrations")

_log = structlog.get_logger(__name__)

_TALKATIVE = ("aiosqlite", "sqlalchemy.engine.Engine", "sqlalchemy.pool", "alembic")
"""Loggers that write statements at level info; parameters and rows, so memories, at debug."""
_BUSY_SECONDS = 2.0
_CONNECT_SECONDS = 5.0
_LOCK = 0x7573686D  # of the advisory locks, the one for migrations ("ushm")


def memory_url(url: str | None, data: Path) -> str:
    """Where memories live; without a setting, a file of their own in the data folder."""
    if url is None:
        return f"sqlite+aiosqlite:///{data / 'memory.db'}"
    try:
        return ledger_url(url, data)
    except ConfigError as error:
        raise _wrong(error.message.replace("ledger.url", "memory.url")) from None


class Database:
    """Transactions, each alone with one person's rows. Every failure is an Unavailable."""

    def __init__(self, url: str) -> None:
        self._url = url
        for talkative in _TALKATIVE:
            logging.getLogger(talkative).setLevel(logging.WARNING)
        self._engine = _create_engine(url)
        self._ready = False
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A connection that writes nothing."""
        async with self._connect() as connection:
            yield connection

    @asynccontextmanager
    async def writing(self, whose: Principal | None = None) -> AsyncIterator[AsyncConnection]:
        """A transaction that ends whole or not at all; two of the same person take turns."""
        async with self._connect() as connection:
            await connection.run_sync(_begin_alone, _lock_number(whose))
            yield connection
            await connection.commit()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._engine.dispose()

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[AsyncConnection]:
        try:
            await self._migrate()
            async with self._engine.connect() as connection:
                yield connection
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            _log.warning("memory_unavailable", reason=_describe(error))
            raise Unavailable("Memory cannot be reached.", retry_after=5) from error

    async def _migrate(self) -> None:
        """Bring the schema up to date, once. Raises ConfigError when it is newer than this code."""
        if self._ready:
            return
        async with self._opening:
            await self._prepare()

    async def _prepare(self) -> None:
        if self._ready:
            return
        path = sqlite_path(self._url)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
        async with self._engine.connect() as connection:
            if path is not None:
                await connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            await connection.run_sync(self._upgrade)
        self._ready = True

    def _upgrade(self, connection: Connection) -> None:
        _begin_alone(connection, _LOCK)
        found = _read_version(connection)
        if found is not None and found > HEAD:
            raise _wrong(f"memory.url: {public_url(self._url)} was written by a newer Usher")
        if found != HEAD:
            _run_migrations(connection)
        connection.commit()


def _run_migrations(connection: Connection) -> None:
    from alembic import command  # noqa: PLC0415 - 10 MB, once per schema
    from alembic.config import Config  # noqa: PLC0415 - the same

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes.update(connection=connection, version_table=version.name)
    command.upgrade(config, "head")


def _create_engine(url: str) -> AsyncEngine:
    """Its parameters are memories, so no log and no error may show them."""
    try:
        if sqlite_path(url) is None:
            wait = {"timeout": _CONNECT_SECONDS, "command_timeout": 30.0}
            return create_async_engine(
                url, pool_size=4, pool_pre_ping=True, connect_args=wait, hide_parameters=True
            )
        wait = {"timeout": _BUSY_SECONDS}
        return create_async_engine(
            url, pool_size=3, max_overflow=0, connect_args=wait, hide_parameters=True
        )
    except ImportError:
        raise _wrong("memory.url: PostgreSQL needs usher-gateway[postgres] installed") from None
    except (SQLAlchemyError, ValueError):  # their own texts repeat parts of the password
        raise _wrong(f"memory.url: {public_url(url)} is not a URL") from None


def _begin_alone(connection: Connection, lock: int) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({lock})")
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _lock_number(whose: Principal | None) -> int:
    named = repr(whose).encode()
    return int.from_bytes(hashlib.blake2b(named, digest_size=8).digest(), "big", signed=True)


def _read_version(connection: Connection) -> str | None:
    if not sqlalchemy.inspect(connection).has_table(version.name):
        return None
    return connection.scalar(sqlalchemy.select(version.c.version_num))


def _describe(error: Exception) -> str:
    """One line without statements and parameters, which hold values."""
    cause = getattr(error, "orig", None) or error
    return f"{type(error).__name__}: {str(cause).partition(chr(10))[0]}"[:200]


def _wrong(message: str) -> ConfigError:
    return ConfigError(message, param="memory.url")
