"""A question about a catalogue comes in over HTTP; the best tools with their schemas go out."""

import asyncio
import time

import orjson
from starlette.routing import BaseRoute, Route

from proxy.edge.asked import Asked
from proxy.edge.endpoint import Endpoint
from proxy.edge.exchange import Edge
from proxy.errors import BadRequest, NotFound
from proxy.plan.exchange import Reply
from proxy.shelf import Shelf
from proxy.tools.lookup import NO_TOOLS, Lookup, look_up, read_lookup
from proxy.tools.toolbox import Toolbox
from proxy.wire import Headers, JSONObject


class UnknownCatalogue(NotFound):
    """The URL is right; no tools of that digest are known to the tenant, or not any more."""

    code = "catalogue_not_found"


def lookup_routes(edge: Edge, shelf: Shelf) -> list[BaseRoute]:
    """`POST /usher/tools/search`: the ranker that `tool_search` uses, for people and programs.

    `x-usher-catalogue` is the digest that stands for the tools from now on. The log says who asked,
    how long it took and how many were found; not what was asked.
    """

    async def answer(asked: Asked) -> Reply:
        began = time.perf_counter()
        lookup = read_lookup(asked.body)
        headers: Headers = [(b"content-type", b"application/json")]
        toolbox = await _find(shelf, asked.caller.tenant, lookup)
        found: JSONObject = {"tools": [], "total_searched": 0}
        if toolbox is not None:
            found = await asyncio.to_thread(lambda: look_up(toolbox.whole_index(), lookup))
            headers.append((b"x-usher-catalogue", toolbox.catalogue.digest.encode()))
        edge.log.info(
            "tools_searched",
            tenant=asked.caller.tenant,
            key=asked.caller.key,
            found=len(found["tools"]),
            total=found["total_searched"],
            ms=round((time.perf_counter() - began) * 1000, 2),
        )
        return Reply(200, headers, orjson.dumps(found))

    return [Route("/usher/tools/search", Endpoint(edge, answer), methods=["POST"])]


async def _find(shelf: Shelf, tenant: str, lookup: Lookup) -> Toolbox | None:
    """The tools to search; None where the caller sent none."""
    if lookup.tools is None:
        known = shelf.find(tenant, lookup.digest or "")
        if known is None:
            raise UnknownCatalogue(
                "No catalogue of that digest is known; send its tools.", param="catalogue"
            )
        return known
    if lookup.tools == NO_TOOLS:
        return None
    toolbox = await shelf.take(tenant, memoryview(lookup.tools), everything=False)
    if toolbox is None:
        raise BadRequest("`tools` must be tools as a chat request has them", param="tools")
    return toolbox
