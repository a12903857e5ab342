"""A gateway without memory comes in; routes that say so, instead of nothing, go out."""

from starlette.routing import BaseRoute, Route

from proxy.edge.asked import Asked
from proxy.edge.endpoint import Endpoint
from proxy.edge.exchange import Edge
from proxy.errors import NotFound
from proxy.plan.exchange import Reply

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


class MemoryOff(NotFound):
    """There are no memories here because nobody switched them on."""

    code = "memory_off"


def no_memory_routes(edge: Edge) -> list[BaseRoute]:
    """Everything under `/usher/memory`, where memory is off."""

    async def refuse(_: Asked) -> Reply:
        raise MemoryOff("Memory is off: set memory.mode.")

    paths = ("/usher/memory", "/usher/memory/{rest:path}")
    return [Route(path, Endpoint(edge, refuse), methods=_METHODS) for path in paths]
