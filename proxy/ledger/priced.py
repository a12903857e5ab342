"""Rows in; priced, told to whoever counts along, and handed on to the ledger behind."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from proxy.ledger.location import ledger_url
from proxy.ledger.null import NullLedger
from proxy.ledger.prices import Prices
from proxy.ledger.status import Options
from proxy.ledger.store import Health, Ledger, UsageQuery
from proxy.ledger.usage import Row, TurnRow
from proxy.ledger.writer import SqlLedger
from proxy.settings import Ledger as LedgerSettings
from proxy.wire import JSONObject


@dataclass(frozen=True, slots=True)
class Listeners:
    """Who is told of lines on the event loop, so must be quick: budgets, metrics, traces."""

    calls: tuple[Callable[[Row], None], ...] = ()
    turns: tuple[Callable[[TurnRow], None], ...] = ()


NOBODY = Listeners()


class PricedLedger:
    """A ledger whose rows have a cost; listeners hear of them also when the ledger is off."""

    def __init__(self, inner: Ledger, prices: Prices, listeners: Listeners = NOBODY) -> None:
        self._inner = inner
        self._prices = prices
        self._listeners = listeners

    def record(self, row: Row) -> None:
        """Price, tell, keep."""
        priced = self._prices.price(row)
        for listener in self._listeners.calls:
            listener(priced)
        self._inner.record(priced)

    def record_turn(self, turn: TurnRow) -> None:
        """Tell and keep."""
        for listener in self._listeners.turns:
            listener(turn)
        self._inner.record_turn(turn)

    async def start(self) -> None:
        """Read the price table and check the ledger; raises ConfigError."""
        await asyncio.to_thread(self._prices.load)
        await self._inner.start()

    async def aclose(self) -> None:
        """Write what is pending."""
        await self._inner.aclose()

    @property
    def health(self) -> Health:
        """How it goes."""
        return self._inner.health

    async def usage(self, query: UsageQuery) -> list[JSONObject]:
        """Totals of calls."""
        return await self._inner.usage(query)

    async def savings(self, query: UsageQuery) -> list[JSONObject]:
        """Totals of turns."""
        return await self._inner.savings(query)

    async def requests(
        self, tenant: str | None, limit: int = 50, before: float | None = None
    ) -> list[JSONObject]:
        """The newest turns."""
        return await self._inner.requests(tenant, limit, before)

    async def timeline(self, request_id: str, tenant: str | None) -> JSONObject | None:
        """One turn with all its calls."""
        return await self._inner.timeline(request_id, tenant)

    async def spent(self, since: float) -> Sequence[tuple[str, int, int]]:
        """Known cost per key and day."""
        return await self._inner.spent(since)


def make_ledger(
    settings: LedgerSettings, data: Path, prices: Prices, listeners: Listeners = NOBODY
) -> PricedLedger:
    """The ledger that the settings ask for, not yet started; `data` is the data folder.

    Raises ConfigError for a URL of another kind of database.
    """
    if not settings.enabled:
        return PricedLedger(NullLedger(), prices, listeners)
    options = Options(
        flush_seconds=settings.flush_ms / 1000,
        queue_rows=settings.queue_rows,
        keep_days=settings.keep_days,
        keep_rows=settings.keep_rows,
        price=prices.price,
    )
    return PricedLedger(SqlLedger(ledger_url(settings.url, data), options), prices, listeners)
