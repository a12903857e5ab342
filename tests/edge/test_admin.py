"""The ledger over HTTP: for admins, for their tenant, in JSON."""

import time
from typing import Any

import orjson
import pytest
from starlette.applications import Starlette

from proxy.edge.admin import ALL_TENANTS, admin_routes, read_since
from proxy.edge.routes import Extras, build_routes
from proxy.errors import BadRequest
from proxy.ledger.null import NullLedger
from proxy.ledger.store import UsageQuery
from proxy.plan.identity import Caller
from proxy.wire import JSONObject
from tests.edge.driver import Answered, KeyBook, Rig, ask, refuse_chat

pytestmark = pytest.mark.anyio

KEYS = KeyBook(
    {
        "root": Caller(tenant=ALL_TENANTS, key="root", admin=True),
        "boss": Caller(tenant="acme", key="boss", admin=True),
        "user": Caller(tenant="acme", key="user"),
    }
)


class FakeLedger(NullLedger):
    """Answers each question with what it was asked."""

    async def usage(self, query: UsageQuery) -> list[JSONObject]:
        return [{"by": query.by, "tenant": query.tenant, "since": query.since}]

    async def requests(
        self, tenant: str | None, limit: int = 50, before: float | None = None
    ) -> list[JSONObject]:
        return [{"tenant": tenant, "limit": limit, "before": before}]

    async def timeline(self, request_id: str, tenant: str | None) -> JSONObject | None:
        return {"id": request_id, "tenant": tenant} if request_id == "req_1" else None


def gateway(keys: KeyBook | None = KEYS) -> Starlette:
    rig = Rig(keys=keys)
    forward_nothing: Any = None
    routes = admin_routes(rig.edge, FakeLedger())
    return build_routes(rig.edge, refuse_chat, forward_nothing, Extras(routes))


async def get(
    url: str, key: str = "boss", app: Starlette | None = None, host: str = "gateway.test"
) -> Answered:
    headers = [("authorization", f"Bearer {key}"), ("host", host)]
    return await ask(app or gateway(), "GET", url, headers=headers)


async def get_json(url: str, key: str = "boss") -> JSONObject:
    answered = await get(url, key)
    assert answered.status == 200, answered.body
    found: JSONObject = orjson.loads(answered.body)
    return found


@pytest.mark.parametrize("path", ["/usher/usage", "/usher/requests", "/usher/requests/req_1"])
async def test_only_admins_may_ask(path: str) -> None:
    """403 for other keys, 401 for none of ours."""
    assert (await get(path, "boss")).status == 200
    assert (await get(path, "user")).status == 403
    assert (await get(path, "nobody")).status == 401


async def test_usage_has_both_books_and_the_ledgers_health() -> None:
    """Totals, savings, and whether rows got lost."""
    found = await get_json("/usher/usage")
    assert found["by"] == ["model", "context"]
    assert found["savings"] == []
    assert found["ledger"]["dropped"] == 0


async def test_usage_by_day_and_key_since_a_week() -> None:
    """What the query names is what the ledger is asked."""
    asked = (await get_json("/usher/usage?by=day,key&since=7d"))["usage"][0]
    assert asked["by"] == ["day", "key"]
    assert asked["since"] == pytest.approx(time.time() - 7 * 86_400, abs=60)


@pytest.mark.parametrize(
    ("key", "query", "tenant"),
    [("boss", "", "acme"), ("boss", "?tenant=other", "acme"), ("root", "", None),
     ("root", "?tenant=other", "other")],
)  # fmt: skip
async def test_a_tenants_admin_sees_that_tenant(key: str, query: str, tenant: str | None) -> None:
    """Only a key of all tenants may choose."""
    for path in ("usage", "requests"):
        assert (await get_json(f"/usher/{path}{query}", key))[path][0]["tenant"] == tenant
    assert (await get_json(f"/usher/requests/req_1{query}", key))["tenant"] == tenant


async def test_pages_of_requests() -> None:
    """With a limit that has a limit."""
    found = await get_json("/usher/requests?limit=9999&before=12.5")
    assert found["requests"] == [{"tenant": "acme", "limit": 500, "before": 12.5}]


async def test_a_request_that_is_not_there() -> None:
    """404 in OpenAI's shape."""
    answered = await get("/usher/requests/req_2")
    assert answered.status == 404
    assert b"no request of that id" in answered.body
    assert orjson.loads(answered.body)["error"]["code"] == "unknown_request"


@pytest.mark.parametrize("query", ["by=colour", "since=soon", "since=nan", "by=model,colour"])
async def test_questions_that_make_no_sense(query: str) -> None:
    """400 with the parameter."""
    answered = await get(f"/usher/usage?{query}")
    assert answered.status == 400
    assert orjson.loads(answered.body)["error"]["param"] == query.partition("=")[0]


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:8787", 200), ("127.0.0.1", 200), ("[::1]:8787", 200), ("evil.test:8787", 403),
     ("localhost.evil.test", 403), ("", 403)],
)  # fmt: skip
async def test_without_keys_this_machine_may_ask(host: str, status: int) -> None:
    """But no web page that gave 127.0.0.1 a name of its own."""
    answered = await get("/usher/usage", app=gateway(None), host=host)
    assert answered.status == status


async def test_answers_are_not_cached() -> None:
    """Numbers change, and proxies must not keep who asked what."""
    assert (await get("/usher/usage")).headers["cache-control"] == "no-store"


def test_spans() -> None:
    """Minutes to weeks, or seconds since 1970."""
    assert read_since("30m", 10_000) == 10_000 - 1800
    assert read_since("2w", 0) == -1_209_600
    assert read_since("12.5", 0) == 12.5
    with pytest.raises(BadRequest):
        read_since("inf", 0)


async def test_a_wrong_span_hears_of_spans() -> None:
    """Most people mean one, not seconds since 1970."""
    error = orjson.loads((await get("/usher/usage?since=xx")).body)["error"]
    assert "7d" in error["message"]
    assert error["param"] == "since"


async def test_metrics_can_be_for_admins_of_all() -> None:
    """They count every tenant's models and costs; by default they are as open as the probes."""
    keyed = Rig(keys=KEYS, overrides={"server": {"metrics_key": True}}).app
    statuses = [(await get("/metrics", key, keyed)).status for key in ("root", "boss", "user", "x")]
    assert statuses == [200, 403, 403, 401]
    assert b"usher_requests_total" in (await get("/metrics", "root", keyed)).body
    assert (await ask(Rig(keys=KEYS).app, "GET", "/metrics")).status == 200
    assert (await ask(keyed, "GET", "/livez")).status == 200


@pytest.mark.parametrize(("host", "status"), [("localhost:8787", 200), ("gateway.test", 403)])
async def test_metrics_without_keys_stay_on_this_machine(host: str, status: int) -> None:
    """Where they are not for everybody and nobody has a key."""
    rig = Rig(overrides={"server": {"metrics_key": True}})
    assert (await get("/metrics", "none", rig.app, host)).status == status
