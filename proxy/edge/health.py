"""Probes come in; whether Usher lives, is ready for work, and what it counted goes out."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from proxy.edge.admit import Gate
from proxy.observe.metrics import Metrics

_FRESH = {"cache-control": "no-store"}


def health_routes(gate: Gate, metrics: Metrics) -> list[BaseRoute]:
    """The routes of operations; LiteLLM's names lead to the same places."""

    async def livez(_: Request) -> Response:
        return JSONResponse({"status": "ok"}, headers=_FRESH)

    async def readyz(_: Request) -> Response:
        status = "draining" if gate.draining else "ok"
        body = {"status": status, "in_flight": gate.inside}
        return JSONResponse(body, 503 if gate.draining else 200, headers=_FRESH)

    async def exposition(_: Request) -> Response:
        body, content_type = metrics.render()
        return Response(body, headers={"content-type": content_type})

    return [
        Route("/livez", livez),
        Route("/readyz", readyz),
        Route("/health/liveliness", livez),
        Route("/health/liveness", livez),
        Route("/health/readiness", readyz),
        Route("/metrics", exposition),
    ]
