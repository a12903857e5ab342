"""Questions about the books in: SQL statements, and from their rows the JSON of the admin API."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import orjson
from sqlalchemy import Column, Select, Table, case, func, select

from proxy.ledger.schema import calls, turns
from proxy.ledger.store import UsageQuery
from proxy.wire import JSON, JSONObject

Record: TypeAlias = Mapping[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SUMS = (
    "prompt_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "cost_nano_usd",
)
_TURN_SUMS = ("kept", "deferred", "predicted", "discovered", "hits", "unused", "missed")
_CALL_FIELDS = (
    "context",
    "round",
    "provider",
    "model",
    "answered_model",
    "prompt_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "cost_nano_usd",
    "cost_source",
    "service_tier",
    "started_at",
    "latency_ms",
    "tools_sent",
    "tools_deferred",
    "tokens_avoided",
    "estimated",
    "outcome",
    "detail",
)
_LONGEST_TURN = 3_600.0
_LINE_FIELDS = ("tenant", "key", "user", "model", "started_at", "duration_ms", "outcome")
_TOOL_FIELDS = ("kept", "deferred", "predicted", "discovered")
_PREDICTION_FIELDS = ("hits", "unused", "missed")


def select_usage(query: UsageQuery) -> Select[Any]:
    """Totals of calls per group; a sum leaves unknown numbers out and says how many they were."""
    groups: list[Column[Any]] = [calls.c[name] for name in query.by]
    statement = select(
        *groups,
        func.count().label("calls"),
        *(func.sum(calls.c[name]).label(name) for name in _SUMS),
        func.sum(calls.c.tokens_avoided).label("tokens_avoided_estimate"),
        _count_if(calls.c.prompt_tokens.is_(None)).label("calls_without_tokens"),
        _count_if(calls.c.cost_nano_usd.is_(None)).label("calls_without_cost"),
        _count_if(calls.c.estimated).label("calls_estimated"),
    )
    ordered = _filter(statement, calls, query).group_by(*groups)
    return ordered.order_by(func.coalesce(func.sum(calls.c.prompt_tokens), 0).desc(), *groups)


def select_savings(query: UsageQuery) -> Select[Any]:
    """What deferral and prediction did per group; turns have no context and no provider."""
    groups = [turns.c[name] for name in query.by if name in turns.c]
    statement = select(
        *groups,
        func.count().label("turns"),
        *(func.sum(turns.c[name]).label(name) for name in _TURN_SUMS),
        func.sum(turns.c.tokens_avoided).label("tokens_avoided_estimate"),
        _count_if((turns.c.deferred > 0) & turns.c.tokens_avoided.is_(None)).label(
            "turns_without_estimate"
        ),
    )
    return _filter(statement, turns, query).group_by(*groups).order_by(*groups)


def shape_totals(row: Record) -> JSONObject:
    """One group as JSON: whole numbers (PostgreSQL sums to Decimal) and the day as a date."""
    shaped = {name: _plain(value) for name, value in row.items()}
    if "day" in shaped:
        shaped["day"] = (_EPOCH + timedelta(days=shaped["day"])).date().isoformat()
    return shaped


def select_requests(tenant: str | None, limit: int, before: float | None) -> Select[Any]:
    """The newest turns."""
    statement = select(turns).order_by(turns.c.started_at.desc()).limit(limit)
    if tenant is not None:
        statement = statement.where(turns.c.tenant == tenant)
    return statement if before is None else statement.where(turns.c.started_at < before)


def select_request(table: Table, request_id: str, tenant: str | None) -> Select[Any]:
    """All lines of one request in one of the tables, in the order they happened."""
    statement = select(table).where(table.c.request_id == request_id)
    if tenant is not None:
        statement = statement.where(table.c.tenant == tenant)
    return statement.order_by(table.c.started_at, table.c.line)


def shape_request(row: Record) -> JSONObject:
    """A turn as one line of the list."""
    return {
        "id": row["request_id"],
        **{name: row[name] for name in _LINE_FIELDS},
        "tools": {name: row[name] for name in _TOOL_FIELDS},
        "predictions": {name: row[name] for name in _PREDICTION_FIELDS},
        "tokens_avoided_estimate": row["tokens_avoided"],
    }


def read_own_id(turn_rows: Sequence[Record]) -> str | None:
    """Our own id of a turn that goes by its upstream's: judgments were booked under it."""
    for row in turn_rows:
        found = (_decode(row["detail"]) or {}).get("own_id")
        if isinstance(found, str):
            return found
    return None


def select_adopted(own_id: str, around: float, tenant: str | None) -> Select[Any]:
    """The turn that goes by its upstream's id; `around` is when one of its calls began."""
    said = f'"own_id":{orjson.dumps(own_id).decode()}'
    statement = select(turns).where(
        turns.c.started_at.between(around - _LONGEST_TURN, around + _LONGEST_TURN),
        turns.c.detail.contains(said, autoescape=True),
    )
    return statement if tenant is None else statement.where(turns.c.tenant == tenant)


def shape_timeline(turn_rows: Sequence[Record], call_rows: Sequence[Record]) -> JSONObject | None:
    """A turn with everything it did; a turn still running is told from its calls so far."""
    if not turn_rows and not call_rows:
        return None
    detail: JSONObject = {}
    if turn_rows:
        head = shape_request(turn_rows[-1])
        detail = _decode(turn_rows[-1]["detail"]) or {}
    else:
        head = shape_request(_turn_of_calls(call_rows))
    return {
        **head,
        "plan": detail.get("plan"),
        "calls": [_shape_call(row) for row in call_rows],
        "memory": detail.get("memory"),
        "triage": detail.get("triage"),
        "own_id": detail.get("own_id"),
    }


def select_spent(since: float) -> Select[Any]:
    """Known cost per key and day."""
    total = func.sum(calls.c.cost_nano_usd)
    statement = select(calls.c.key, calls.c.day, total.label("cost_nano_usd"))
    fresh = statement.where(calls.c.started_at >= since, calls.c.cost_nano_usd.is_not(None))
    return fresh.group_by(calls.c.key, calls.c.day)


def _filter(statement: Select[Any], table: Table, query: UsageQuery) -> Select[Any]:
    if query.tenant is not None:
        statement = statement.where(table.c.tenant == query.tenant)
    return statement if query.since is None else statement.where(table.c.started_at >= query.since)


def _count_if(condition: Any) -> Any:
    return func.sum(case((condition, 1), else_=0))


def _plain(value: Any) -> JSON:
    return value if value is None or isinstance(value, str) else int(value)


def _decode(detail: str | None) -> JSON:
    return None if detail is None else orjson.loads(detail)


def _shape_call(row: Record) -> JSONObject:
    return {name: row[name] for name in _CALL_FIELDS} | {"detail": _decode(row["detail"])}


def _turn_of_calls(call_rows: Sequence[Record]) -> Record:
    """The line of a turn that has none: still running, killed, or passed through.

    Only what passed through knows nothing of tools, and that was entered at its end.
    """
    unknown = dict.fromkeys((*_TOOL_FIELDS, *_PREDICTION_FIELDS, "duration_ms", "tokens_avoided"))
    main = next((row for row in call_rows if row["context"] == "main"), call_rows[0])
    told = any(row["tools_deferred"] is not None for row in call_rows)
    passed = main["context"] == "main" and not told
    return {**main, **unknown, "outcome": main["outcome"] if passed else "unfinished"}
