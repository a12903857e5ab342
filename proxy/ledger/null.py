"""The ledger when it is off: rows in, nothing out."""

# ruff: noqa: ARG002 - it takes what the Protocol says and uses none of it

from collections.abc import Sequence

from proxy.ledger.store import Health, UsageQuery
from proxy.ledger.usage import Row, TurnRow
from proxy.wire import JSONObject


class NullLedger:
    """The ledger when it is off: takes everything, keeps nothing."""

    @property
    def health(self) -> Health:
        """Always well."""
        return Health()

    def record(self, row: Row) -> None:
        """Forget the row."""

    def record_turn(self, turn: TurnRow) -> None:
        """Forget the turn."""

    async def start(self) -> None:
        """Nothing to check."""

    async def aclose(self) -> None:
        """Nothing to write."""

    async def usage(self, query: UsageQuery) -> list[JSONObject]:
        """No totals."""
        return []

    async def savings(self, query: UsageQuery) -> list[JSONObject]:
        """No totals."""
        return []

    async def requests(
        self, tenant: str | None, limit: int = 50, before: float | None = None
    ) -> list[JSONObject]:
        """No turns."""
        return []

    async def timeline(self, request_id: str, tenant: str | None) -> JSONObject | None:
        """No such turn."""
        return None

    async def spent(self, since: float) -> Sequence[tuple[str, int, int]]:
        """Nothing known to be spent."""
        return ()
