"""A request's id comes in over HTTP; what triage decided after it, and why, goes out."""

from collections.abc import Awaitable, Callable, Mapping

from starlette.routing import BaseRoute, Route

from proxy.edge.admin import guard, read_tenant
from proxy.edge.asked import Asked
from proxy.edge.endpoint import Endpoint
from proxy.edge.exchange import Edge
from proxy.errors import BadRequest, NotFound
from proxy.wire import JSON


class NoDecision(NotFound):
    """Nothing was decided after a request of that id."""

    code = "request_not_found"


Explain = Callable[[str, str], Awaitable[JSON]]
"""Tenant and request id to the audit's entry, or None."""


def triage_routes(edge: Edge, explain: Explain) -> list[BaseRoute]:
    """`GET /usher/triage/explain?request_id=…`, for admins of the tenant."""

    async def answer(asked: Asked, query: Mapping[str, str]) -> JSON:
        request_id = query.get("request_id")
        if not request_id:
            raise BadRequest("Name a request: ?request_id=…", param="request_id")
        tenant = read_tenant(asked, query) or asked.caller.tenant
        entry = await explain(tenant, request_id)
        if entry is None:
            raise NoDecision(
                "Nothing was decided after a request of that id, or not lately.", param="request_id"
            )
        return {"request_id": request_id, **entry}

    return [Route("/usher/triage/explain", Endpoint(edge, guard(answer)), methods=["GET"])]
