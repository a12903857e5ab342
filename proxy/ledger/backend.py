"""What the writer needs of a database, whichever it is."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from proxy.ledger.encode import Encoded
from proxy.ledger.store import Books


class Failure(Exception):
    """The database is away, full, locked or read-only, and may work again later.

    Its text is one line for operators, without statements, parameters and passwords.
    """


class Refused(Failure):
    """The server answered, and said no: a wrong password, a database that does not exist."""


class Rejected(Failure):
    """A line is wrong, not the database: the same batch will never go in."""


class Lines(Protocol):
    """Encoded lines of one table, which can be gone through more than once."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Encoded]: ...


class Backend(Protocol):
    """An open database with the schema of this version. Each method may raise Failure."""

    async def write(self, calls: Lines, turns: Lines) -> None:
        """Write both or neither; lines that are already there are left as they are."""

    async def delete(self, statements: Sequence[str]) -> None:
        """Run DELETE statements, each in a transaction of its own."""

    async def books(self) -> Books:
        """The questions that can be asked."""

    async def aclose(self) -> None:
        """Close all connections."""
