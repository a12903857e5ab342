"""The plan of a request over HTTP."""

import orjson
import pytest
from starlette.applications import Starlette

from proxy.edge.explain import explain_routes
from proxy.plan.exchange import ChatRequest
from proxy.wire import JSONObject
from tests.edge.driver import Rig, ask

pytestmark = pytest.mark.anyio


async def test_the_body_is_asked_about_not_sent() -> None:
    """Body and options reach the planner as for a completion; its plan is the reply."""
    heard: list[ChatRequest] = []

    async def explain(request: ChatRequest) -> JSONObject:
        heard.append(request)
        return {"bypass": "small"}

    app = Starlette(routes=explain_routes(Rig().edge, explain))
    headers = [("x-usher-defer", "all")]
    answered = await ask(app, "POST", "/usher/explain", b'{"model":"m"}', headers)
    assert answered.status == 200
    assert orjson.loads(answered.body) == {"bypass": "small"}
    assert heard[0].body == b'{"model":"m"}'
    assert (b"x-usher-defer", b"all") in heard[0].headers
