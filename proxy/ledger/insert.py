"""Lines of a table in; in the file once, in as few statements as there can be.

SQLite's tables have no key that would refuse a line that is already there: it would cost a third of
the writing. A batch goes in whole or not at all, so its first line tells whether it was written
before, which happens when a commit succeeded and nobody heard of it. That is only asked about
lines that were tried before: to find one among all that share its request id takes longer the more
there are, and some upstreams give every answer the same one.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeAlias, cast

import msgspec

from proxy.ledger.backend import Lines
from proxy.ledger.encode import Encoded

Statement: TypeAlias = tuple[str, Encoded]

_AT_ONCE = (512, 128, 32, 8, 2, 1)
"""Rows per statement, most first; 512 rows of 28 values are within SQLite's 32,766.

SQLite lets go of the interpreter's lock once for each statement. To get it back from a busy event
loop takes a switch interval, in which the loop pays for every lock that it lets go of.
"""

_KEY = 4
"""The values that a line begins with: writer, number, day, id of the request."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Lines, and the statements that write all of them."""

    lines: Lines
    statements: list[Statement]


class Insert:
    """Writes lines of one kind."""

    def __init__(self, table: str, line: type[msgspec.Struct]) -> None:
        self._sized = [(rows, _insert(table, line, rows)) for rows in _AT_ONCE]
        self._known = _known(table)
        self._missing = insert_missing(table, line)
        self._tried = (-1, 0)

    def prepare(self, lines: Lines) -> Prepared:
        """Everything that can be done before the file is locked."""
        return Prepared(lines, list(self._bind(lines)))

    def run(self, connection: sqlite3.Connection, prepared: Prepared) -> None:
        """Write them inside the connection's transaction."""
        if not prepared.statements:
            return
        first = next(iter(prepared.lines))
        tried = self._tried_before(first, len(prepared.lines))
        if tried and connection.execute(self._known, first[:_KEY]).fetchone() is not None:
            connection.executemany(self._missing, prepared.lines)
            return
        for statement, values in prepared.statements:
            connection.execute(statement, values)

    def _tried_before(self, first: Encoded, lines: int) -> bool:
        """Whether some of these lines may have been; a writer's numbers only ever grow."""
        writer, number = cast("tuple[int, int]", first[:2])
        known, newest = self._tried
        self._tried = writer, max(newest if known == writer else 0, number + lines - 1)
        return known != writer or newest >= number

    def _bind(self, lines: Lines) -> Iterator[Statement]:
        left, encoded = len(lines), iter(lines)
        for rows, statement in self._sized:
            while left >= rows:
                yield statement, tuple(chain.from_iterable(islice(encoded, rows)))
                left -= rows


def insert_missing(table: str, line: type[msgspec.Struct]) -> str:
    """SQLite's statement for a line that may be there already."""
    values = ", ".join(f"?{number}" for number in range(1, 1 + _width(line)))
    return f"INSERT INTO {table} SELECT {values} WHERE NOT EXISTS ({_known(table)})"


def _known(table: str) -> str:
    """Whether a line is there, of whose first four values the index over ids needs the last."""
    same = "request_id = ?4 AND writer = ?1 AND line = ?2"
    return f"SELECT 1 FROM {table} WHERE {same}"  # noqa: S608 - names of our own


def _insert(table: str, line: type[msgspec.Struct], rows: int) -> str:
    """Values are in the order of the columns; a test keeps it so."""
    row = f"({', '.join(['?'] * _width(line))})"
    return f"INSERT INTO {table} VALUES {', '.join([row] * rows)}"  # noqa: S608 - names of our own


def _width(line: type[msgspec.Struct]) -> int:
    """Writer, number and day come before the fields."""
    return 3 + len(msgspec.structs.fields(line))
