"""The ledger in a SQLite file, written with the standard library alone.

SQLAlchemy takes 25 MB and 0.3 s. Writing needs none of it: a new file gets the schema that the
migrations make, ready as SQL, and only questions and old files load the rest.
"""

import asyncio
import functools
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Self, TypeVar

from proxy.errors import ConfigError
from proxy.ledger.backend import Backend, Failure, Lines, Rejected
from proxy.ledger.insert import Insert
from proxy.ledger.location import HEAD, check_version, public_url, read_version, sqlite_path
from proxy.ledger.store import Books
from proxy.ledger.usage import Row, TurnRow

SCHEMA = Path(__file__).with_name("migrations") / "sqlite.sql"
"""What the migrations make of an empty file; a test keeps it so."""

_BAD_LINE = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.DataError, OverflowError)

T = TypeVar("T")

_NULL: dict[None, None] = {}
# Python's sqlite3 binds None only after it has looked for somebody who adapts it, and made an
# exception because there is nobody: a quarter of what writing takes, at nine nulls a request.
sqlite3.register_adapter(type(None), _NULL.get)

_BUSY_SECONDS = 2.0
_PRAGMAS = (
    "PRAGMA journal_mode=WAL",  # readers do not wait for the writer
    "PRAGMA synchronous=NORMAL",  # survives a kill without fsync; a power cut may cost seconds
)


class SqliteFile:
    """One connection, used by one thread at a time."""

    def __init__(self, url: str, connection: sqlite3.Connection) -> None:
        self._url = url
        self._connection = connection
        self._inserts = (Insert("usher_calls", Row), Insert("usher_turns", TurnRow))
        self._database: Backend | None = None

    @classmethod
    async def open(cls, url: str) -> Self:
        """Make or check the file. Raises Failure, or ConfigError for one of a newer Usher."""
        connection, found = await _guard(url, lambda: _connect(url))
        backend = cls(url, connection)
        if found is not None and found < HEAD:
            try:
                await backend._load()
            except (ConfigError, Failure):
                await backend.aclose()
                raise
        return backend

    async def write(self, calls: Lines, turns: Lines) -> None:
        await self._run(lambda: self._write(calls, turns))

    async def delete(self, statements: Sequence[str]) -> None:
        for statement in statements:
            await self._run(functools.partial(self._connection.execute, statement))

    async def books(self) -> Books:
        return await (self._database or await self._load()).books()

    async def aclose(self) -> None:
        if self._database is not None:
            await self._database.aclose()
        await self._run(self._connection.close)

    async def _load(self) -> Backend:
        """SQLAlchemy's view of the same file, migrated if it is old."""
        opening = await asyncio.to_thread(_import_opening)
        self._database = await opening(self._url)
        return self._database

    async def _run(self, work: Callable[[], T]) -> T:
        return await _guard(self._url, work)

    def _write(self, calls: Lines, turns: Lines) -> None:
        connection = self._connection
        work = zip(self._inserts, (calls, turns), strict=True)
        prepared = [(insert, insert.prepare(lines)) for insert, lines in work]
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            for insert, lines in prepared:
                insert.run(connection, lines)


async def _guard(url: str, work: Callable[[], T]) -> T:
    """Off the loop, because SQLite waits for locks; what goes wrong is a Failure."""
    try:
        return await asyncio.to_thread(work)
    except _BAD_LINE as error:
        raise Rejected(f"ledger.url: {public_url(url)}: a line is wrong") from error
    except (sqlite3.Error, OSError) as error:
        raise Failure(f"ledger.url: {public_url(url)}: {error}") from None


def _connect(url: str) -> tuple[sqlite3.Connection, str | None]:
    """The open file and its version; a new file gets the schema."""
    path = sqlite_path(url)
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        return connection, _prepare(connection, path)
    except (sqlite3.Error, ConfigError):
        connection.close()
        raise


def _prepare(connection: sqlite3.Connection, path: Path) -> str | None:
    for pragma in _PRAGMAS:
        connection.execute(pragma)
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        found = read_version(connection)
        check_version(str(path), found)
        if found is None:
            for statement in SCHEMA.read_text().split(";\n"):
                connection.execute(statement)
    return found


def _import_opening() -> Callable[[str], Awaitable[Backend]]:
    from proxy.ledger.database import open_database  # noqa: PLC0415 - SQLAlchemy, see above

    return open_database
