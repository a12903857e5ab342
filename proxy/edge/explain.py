"""A chat request comes in; the plan that Usher would follow goes out, and nothing is sent."""

from collections.abc import Awaitable, Callable

import orjson
from starlette.routing import BaseRoute, Route

from proxy.edge.asked import Asked
from proxy.edge.endpoint import Endpoint
from proxy.edge.exchange import Edge
from proxy.plan.exchange import ChatRequest, Reply
from proxy.wire import JSONObject

Explain = Callable[[ChatRequest], Awaitable[JSONObject]]


def explain_routes(edge: Edge, explain: Explain) -> list[BaseRoute]:
    """`POST /usher/explain`: body and headers as for a chat completion."""

    async def answer(asked: Asked) -> Reply:
        plan = await explain(
            ChatRequest(
                path="/chat/completions",
                query=asked.query,
                headers=asked.headers,
                body=asked.body,
                caller=asked.caller,
                request_id=asked.request_id,
            )
        )
        return Reply(200, [(b"content-type", b"application/json")], orjson.dumps(plan))

    return [Route("/usher/explain", Endpoint(edge, answer), methods=["POST"])]
