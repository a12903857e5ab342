"""Rows in from the turns, without ever making one wait; the two sets of books out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from proxy.ledger.usage import Row, TurnRow
from proxy.wire import JSONObject

Dimension: TypeAlias = Literal["model", "context", "key", "user", "day", "provider", "tenant"]


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """Totals wanted: grouped by these dimensions, of one tenant (None = all), since a time."""

    by: tuple[Dimension, ...] = ("model", "context")
    tenant: str | None = None
    since: float | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """How the ledger is doing; `degraded` is a sentence while rows cannot be written."""

    pending: int = 0
    written: int = 0
    dropped: int = 0
    failures: int = 0
    degraded: str | None = None


class Books(Protocol):
    """What has been written down. Each question takes the tenant; None asks about all."""

    async def usage(self, query: UsageQuery) -> list[JSONObject]:
        """Totals of calls per group, largest prompt first."""

    async def savings(self, query: UsageQuery) -> list[JSONObject]:
        """Totals of turns per group: tools kept and deferred, predictions hit and missed."""

    async def requests(
        self, tenant: str | None, limit: int = 50, before: float | None = None
    ) -> list[JSONObject]:
        """The newest turns, one line each, older than `before` when given."""

    async def timeline(self, request_id: str, tenant: str | None) -> JSONObject | None:
        """One turn with all its calls, or None when there is none of that id."""

    async def spent(self, since: float) -> Sequence[tuple[str, int, int]]:
        """What each key cost per day since then: (key, day since 1970 UTC, nano-USD)."""


class Ledger(Books, Protocol):
    """Where every upstream call and every judgment is written down."""

    def record(self, row: Row) -> None:
        """Keep a row; takes a microsecond, never blocks, never raises."""

    def record_turn(self, turn: TurnRow) -> None:
        """Keep the line of a whole turn; the same promise as `record`."""

    async def start(self) -> None:
        """Check what can be checked; raises ConfigError when the settings cannot work."""

    async def aclose(self) -> None:
        """Write what is pending and let go of the database."""

    @property
    def health(self) -> Health:
        """How it goes."""
