"""An operator's questions come in over HTTP; what the ledger knows goes out as JSON."""

import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import get_args
from urllib.parse import parse_qsl

import orjson
from starlette.routing import BaseRoute, Route

from proxy.edge.asked import Asked
from proxy.edge.console import console_routes
from proxy.edge.endpoint import Endpoint
from proxy.edge.exchange import Edge
from proxy.errors import BadRequest, Forbidden, NotFound
from proxy.ledger.store import Dimension, Ledger, UsageQuery
from proxy.plan.exchange import Reply
from proxy.plan.identity import ANONYMOUS
from proxy.wire import JSON

Answer = Callable[[Asked, Mapping[str, str]], Awaitable[JSON]]

ALL_TENANTS = "*"
"""The tenant of an admin key that may read everybody's books."""

_SPAN = re.compile(r"(\d{1,5})([mhdw])")
_OWN_NAME = re.compile(rb"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?")
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_MOST = 500


class UnknownRequest(NotFound):
    """The URL is right; there is no such request."""

    code = "unknown_request"


class Admin:
    """The answers; each sees the books of the caller's tenant only."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def usage(self, asked: Asked, query: Mapping[str, str]) -> JSON:
        """Both sets of books, summed."""
        totals = UsageQuery(
            by=read_dimensions(query.get("by", "model,context")),
            tenant=read_tenant(asked, query),
            since=read_since(query.get("since"), time.time()),
        )
        return {
            "by": totals.by,
            "since": totals.since,
            "usage": await self._ledger.usage(totals),
            "savings": await self._ledger.savings(totals),
            "ledger": asdict(self._ledger.health),
        }

    async def requests(self, asked: Asked, query: Mapping[str, str]) -> JSON:
        """The newest turns; `before` is the `started_at` of the last one seen."""
        limit = read_number("limit", query.get("limit", "50"))
        before = query.get("before")
        turns = await self._ledger.requests(
            read_tenant(asked, query),
            limit=int(min(max(limit, 1), _MOST)),
            before=None if before is None else read_number("before", before),
        )
        return {"requests": turns}

    async def request(self, asked: Asked, query: Mapping[str, str]) -> JSON:
        """One turn as a timeline."""
        request_id = asked.params["id"]
        turn = await self._ledger.timeline(request_id, read_tenant(asked, query))
        if turn is None:
            raise UnknownRequest("The ledger has no request of that id.")
        return turn


def admin_routes(edge: Edge, ledger: Ledger) -> list[BaseRoute]:
    """The routes under `/usher` that read the ledger, and the console that shows it."""
    admin = Admin(ledger)
    table: dict[str, Answer] = {
        "/usher/usage": admin.usage,
        "/usher/requests": admin.requests,
        "/usher/requests/{id}": admin.request,
    }
    answers = [
        Route(path, Endpoint(edge, guard(answer)), methods=["GET"])
        for path, answer in table.items()
    ]
    return [*answers, *console_routes()]


def metrics_route(edge: Edge) -> BaseRoute:
    """`GET /metrics` for who may read everybody's books (`server.metrics_key`)."""

    async def answer(asked: Asked) -> Reply:
        check_admin(asked)
        if asked.caller.admin and asked.caller.tenant != ALL_TENANTS:
            raise Forbidden("Metrics count all tenants: this needs an admin key of tenant *.")
        body, content_type = edge.metrics.render()
        return Reply(200, [(b"content-type", content_type.encode())], body)

    return Route("/metrics", Endpoint(edge, answer), methods=["GET"])


def guard(answer: Answer) -> Callable[[Asked], Awaitable[Reply]]:
    """Let only admins ask, and write what they are told as JSON."""

    async def guarded(asked: Asked) -> Reply:
        check_admin(asked)
        body = orjson.dumps(await answer(asked, dict(parse_qsl(asked.query))))
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
        return Reply(200, headers, body)

    return guarded


def check_admin(asked: Asked) -> None:
    """Raises Forbidden for a key that is no admin's.

    Without any key the gateway is open, but only to names of this machine: a web page that
    points its own name at 127.0.0.1 must not read the books through a visitor's browser.
    """
    if asked.caller.admin:
        return
    if asked.caller != ANONYMOUS:
        raise Forbidden("This needs an admin key.")
    host = next((value for name, value in asked.headers if name == b"host"), b"")
    if not _OWN_NAME.fullmatch(host):
        raise Forbidden("Without keys the ledger is shown on this machine only.")


def read_tenant(asked: Asked, query: Mapping[str, str]) -> str | None:
    """Whose books: the caller's own, or with an admin key of all tenants whichever it names."""
    tenant = asked.caller.tenant
    return query.get("tenant") if tenant == ALL_TENANTS else tenant


def read_dimensions(text: str) -> tuple[Dimension, ...]:
    """The comma list of what to group by."""
    known: tuple[Dimension, ...] = get_args(Dimension)
    words = [word.strip() for word in text.split(",") if word.strip()]
    by = tuple(name for word in words for name in known if name == word)
    if len(by) != len(words):
        raise BadRequest(f"by: use {', '.join(known)}.", param="by")
    return by


def read_since(text: str | None, now: float) -> float | None:
    """A time in seconds since 1970, or a span back from now: 30m, 12h, 7d, 2w."""
    if text is None:
        return None
    span = _SPAN.fullmatch(text)
    if span is not None:
        return now - int(span[1]) * _SECONDS[span[2]]
    try:
        return read_number("since", text)
    except BadRequest:
        words = "since: write a span such as 30m, 12h, 7d or 2w, or seconds since 1970."
        raise BadRequest(words, param="since") from None


def read_number(name: str, text: str) -> float:
    """A number of the query."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadRequest(f"{name}: not a number.", param=name)
    return number
