"""A way to run queries in; the books as JSON out."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Executable

from proxy.errors import Unavailable
from proxy.ledger import report
from proxy.ledger.backend import Failure
from proxy.ledger.schema import calls, turns
from proxy.ledger.store import UsageQuery
from proxy.wire import JSONObject

Read = Callable[[Executable], Awaitable[Sequence[Mapping[str, Any]]]]


class Reader:
    """The `Books` of one database; Unavailable while it is away."""

    def __init__(self, read: Read) -> None:
        self._read_rows = read

    async def usage(self, query: UsageQuery) -> list[JSONObject]:
        rows = await self._read(report.select_usage(query))
        return [report.shape_totals(row) for row in rows if row["calls"]]

    async def savings(self, query: UsageQuery) -> list[JSONObject]:
        rows = await self._read(report.select_savings(query))
        return [report.shape_totals(row) for row in rows if row["turns"]]

    async def requests(
        self, tenant: str | None, limit: int = 50, before: float | None = None
    ) -> list[JSONObject]:
        rows = await self._read(report.select_requests(tenant, limit, before))
        return [report.shape_request(row) for row in rows]

    async def timeline(self, request_id: str, tenant: str | None) -> JSONObject | None:
        turn_rows = await self._read(report.select_request(turns, request_id, tenant))
        call_rows = list(await self._read(report.select_request(calls, request_id, tenant)))
        other = report.read_own_id(turn_rows)
        if call_rows and not turn_rows:
            around = call_rows[0]["started_at"]
            turn_rows = await self._read(report.select_adopted(request_id, around, tenant))
            other = turn_rows[0]["request_id"] if turn_rows else None
        if other is not None:
            call_rows += await self._read(report.select_request(calls, other, tenant))
            call_rows.sort(key=lambda row: row["started_at"])
        return report.shape_timeline(turn_rows, call_rows)

    async def spent(self, since: float) -> Sequence[tuple[str, int, int]]:
        rows = await self._read(report.select_spent(since))
        return [(row["key"], row["day"], int(row["cost_nano_usd"])) for row in rows]

    async def _read(self, statement: Executable) -> Sequence[Mapping[str, Any]]:
        try:
            return await self._read_rows(statement)
        except Failure as error:
            raise Unavailable("The ledger cannot be read now.", retry_after=5) from error
