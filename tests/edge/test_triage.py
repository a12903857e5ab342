"""What triage decided, over HTTP."""

import orjson
import pytest
from starlette.applications import Starlette

from proxy.edge.routes import Extras, build_routes
from proxy.edge.triage import triage_routes
from proxy.plan.identity import Caller
from proxy.wire import JSON
from tests.edge.driver import KeyBook, Rig, ask, refuse_chat

pytestmark = pytest.mark.anyio
KEYS = KeyBook({
    "boss": Caller(tenant="acme", key="boss", admin=True),
    "user": Caller(tenant="acme", key="user"),
})  # fmt: skip


async def _explain(tenant: str, request_id: str) -> JSON:
    return {"reason": "pays"} if (tenant, request_id) == ("acme", "req_1") else None


def _app() -> Starlette:
    rig = Rig(keys=KEYS)
    return build_routes(
        rig.edge, refuse_chat, rig.forward, Extras(triage_routes(rig.edge, _explain))
    )


@pytest.mark.parametrize(("key", "query", "status"), [
    ("boss", "?request_id=req_1", 200),
    ("boss", "?request_id=other", 404),
    ("boss", "", 400),
    ("user", "?request_id=req_1", 403),
])  # fmt: skip
async def test_an_admin_reads_his_tenants_decisions(key: str, query: str, status: int) -> None:
    """By the request's id."""
    headers = [("authorization", f"Bearer {key}")]
    answered = await ask(_app(), "GET", f"/usher/triage/explain{query}", b"", headers)
    assert answered.status == status
    if status == 404:
        error = orjson.loads(answered.body)["error"]
        assert (error["code"], error["param"]) == ("request_not_found", "request_id")
    if status == 200:
        assert orjson.loads(answered.body) == {"request_id": "req_1", "reason": "pays"}
