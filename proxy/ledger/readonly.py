"""A SQLite ledger's file comes in; its books go out, and nothing about the file is changed."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Executable, create_engine
from sqlalchemy.pool import StaticPool

from proxy.errors import ConfigError
from proxy.ledger.location import HEAD, check_version, read_version
from proxy.ledger.reader import Reader
from proxy.ledger.store import Books

_BUSY_SECONDS = 5.0
_FORBIDDEN = ("unable to open", "readonly")


@contextmanager
def open_books(path: Path) -> Iterator[Books | None]:
    """The books of a file that somebody else may be writing, for a program that only asks.

    None for a file that has to be brought up to date first. Raises ConfigError for one that cannot
    be read or that a newer Usher wrote.
    """
    connection, found = _connect(path)
    try:
        check_version(str(path), found)
        yield _make_books(connection) if found == HEAD else None
    finally:
        connection.close()


def _make_books(connection: sqlite3.Connection) -> Books:
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)

    async def read(statement: Executable) -> Sequence[Mapping[str, Any]]:
        with engine.connect() as own:
            return [dict(row) for row in own.execute(statement).mappings()]

    return Reader(read)


def _connect(path: Path) -> tuple[sqlite3.Connection, str | None]:
    """The open file and its version."""
    address = path.resolve().as_uri()
    try:
        return _open(f"{address}?mode=ro")
    except sqlite3.Error as error:
        reason = str(error)
    if any(word in reason for word in _FORBIDDEN):
        # SQLite may not make the files that several readers share: nobody writes either.
        try:
            return _open(f"{address}?immutable=1")
        except sqlite3.Error as error:
            reason = str(error)
    raise ConfigError(f"ledger.url: cannot read {path}: {reason}", param="ledger.url")


def _open(address: str) -> tuple[sqlite3.Connection, str | None]:
    connection = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, check_same_thread=False)
    try:
        return connection, read_version(connection)
    except sqlite3.Error:
        connection.close()
        raise
