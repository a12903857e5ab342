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
from proxy.tools.lookup import Lookup, look_up, read_lookup
from proxy.tools.toolbox import Toolbox


def lookup_routes(edge: Edge, shelf: Shelf) -> list[BaseRoute]:
    """`POST /usher/tools/search`: the ranker that `tool_search` uses, for people and programs.

    The log says who asked, how long it took and how many were found; not what was asked.
    """

    async def answer(asked: Asked) -> Reply:
        began = time.perf_counter()
        lookup = read_lookup(asked.body)
        toolbox = await _find(shelf, asked.caller.tenant, lookup)
        found = await asyncio.to_thread(lambda: look_up(toolbox.whole_index(), lookup))
        edge.log.info(
            "tools_searched",
            tenant=asked.caller.tenant,
            key=asked.caller.key,
            found=len(found["tools"]),
            total=found["total_searched"],
            ms=round((time.perf_counter() - began) * 1000, 2),
        )
        return Reply(200, [(b"content-type", b"application/json")], orjson.dumps(found))

    return [Route("/usher/tools/search", Endpoint(edge, answer), methods=["POST"])]


async def _find(shelf: Shelf, tenant: str, lookup: Lookup) -> Toolbox:
    if lookup.tools is None:
        known = shelf.find(tenant, lookup.digest or "")
        if known is None:
            raise NotFound("No catalogue of that digest is known; send its tools.")
        return known
    toolbox = await shelf.take(tenant, memoryview(lookup.tools), everything=False)
    if toolbox is None:
        raise BadRequest("`tools` must be tools as a chat request has them", param="tools")
    return toolbox
