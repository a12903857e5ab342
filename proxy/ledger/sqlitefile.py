"""The ledger in a SQLite file, written with the standard library alone.

SQLAlchemy takes 25 MB and 0.3 s. Writing needs none of it: a new file gets the schema that the
migrations make, ready as SQL, and only questions and old files load the rest.
"""

import asyncio
import functools
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from proxy.errors import ConfigError
from proxy.ledger.backend import Backend, Failure, Rejected
from proxy.ledger.encode import Encoded
from proxy.ledger.location import HEAD, check_version, public_url, read_version, sqlite_path
from proxy.ledger.store import Books
from proxy.ledger.usage import Row, TurnRow

SCHEMA = Path(__file__).with_name("migrations") / "sqlite.sql"
"""What the migrations make of an empty file; a test keeps it so."""

_BAD_LINE = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.DataError, OverflowError)

T = TypeVar("T")

_BUSY_SECONDS = 2.0
_AT_ONCE = (512, 128, 32, 8, 2, 1)
"""Rows per statement, most first; 512 rows of 28 values are within SQLite's 32,766.

SQLite lets go of the interpreter's lock once for each statement. To get it back from a busy event
loop takes a switch interval, in which the loop pays for every lock that it lets go of.
"""

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",  # readers do not wait for the writer
    "PRAGMA synchronous=NORMAL",  # survives a kill without fsync; a power cut may cost seconds
)


class _Insert:
    """Lines of one table, in as few statements as there can be."""

    def __init__(self, table: str, line: type[msgspec.Struct]) -> None:
        self._sized = [(rows, _insert(table, line, rows)) for rows in _AT_ONCE]

    def run(self, connection: sqlite3.Connection, lines: Sequence[Encoded]) -> None:
        first = 0
        for rows, statement in self._sized:
            while len(lines) - first >= rows:
                values = tuple(chain.from_iterable(lines[first : first + rows]))
                connection.execute(statement, values)
                first += rows


class SqliteFile:
    """One connection, used by one thread at a time."""

    def __init__(self, url: str, connection: sqlite3.Connection) -> None:
        self._url = url
        self._connection = connection
        self._inserts = (_Insert("usher_calls", Row), _Insert("usher_turns", TurnRow))
        self._database: Backend | None = None

    @classmethod
    async def open(cls, url: str) -> Self:
        """Make or check the file. Raises Failure, or ConfigError for one of a newer Usher."""
        connection, found = await _guard(url, lambda: _connect(url))
        backend = cls(url, connection)
        if found is not None and found < HEAD:
            await backend._load()
        return backend

    async def write(self, calls: Sequence[Encoded], turns: Sequence[Encoded]) -> None:
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

    def _write(self, calls: Sequence[Encoded], turns: Sequence[Encoded]) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            for insert, lines in zip(self._inserts, (calls, turns), strict=True):
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


def _insert(table: str, line: type[msgspec.Struct], rows: int) -> str:
    """Values are in the order of the columns; a test keeps it so."""
    values = ["?"] * (3 + len(msgspec.structs.fields(line)))
    row = f"({', '.join(values)})"
    return f"INSERT INTO {table} VALUES {', '.join([row] * rows)} ON CONFLICT DO NOTHING"  # noqa: S608 - names of our own
