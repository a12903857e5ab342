"""The parts of the gateway come in; the ASGI application with its table of URLs goes out."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send

from proxy.edge.admin import metrics_route
from proxy.edge.asked import Asked
from proxy.edge.cors import cors_middleware
from proxy.edge.endpoint import Endpoint
from proxy.edge.exchange import Edge
from proxy.edge.head import read_head
from proxy.edge.health import health_routes
from proxy.edge.passthrough import Forward, Passthrough
from proxy.edge.paths import USUAL, Place, locate
from proxy.edge.respond import error_reply
from proxy.errors import BadRequest, MethodNotAllowed, NotFound, UsherError
from proxy.plan.exchange import ChatRequest, Reply

Chat = Callable[[ChatRequest], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Extras:
    """What other parts add: routes that go before forwarding, and the application's lifespan."""

    routes: Sequence[BaseRoute] = ()
    lifespan: Lifespan[Starlette] | None = None


def build_routes(
    edge: Edge, chat: Chat, forward: Forward, extras: Extras | None = None
) -> "Application":
    """The application: chat turns, operations, the extra routes, and everything else forwarded."""
    extras = extras or Extras()
    edge.metrics.in_flight.set_function(lambda: edge.gate.inside)

    def answer(asked: Asked) -> Awaitable[Reply]:
        return chat(_chat_request(asked))

    # Every route costs a regular expression, so the API's come before the rest.
    keyed = (metrics_route(edge),) if edge.settings.metrics_key else ()
    own = [*keyed, *health_routes(edge.gate, edge.metrics), *extras.routes]

    async def refuse(request: Request, error: Exception) -> Response:
        response = await _refuse_http(request, error)
        edge.metrics.requests.add("other", response.status_code)
        return response

    turns = Endpoint(edge, answer, "chat")
    middleware = cors_middleware(edge.settings.cors_origins)
    app = Application(
        routes=[
            ApiRoute(turns, chat=True),
            *(route for route in own if _is_api(route)),
            ApiRoute(Passthrough(edge, forward)),
            *(route for route in own if not _is_api(route)),
        ],
        exception_handlers={
            UsherError: _refuse,
            HTTPException: refuse,
            Exception: _apologise,
        },
        middleware=middleware,
        lifespan=extras.lifespan,
    )
    # A redirect would lose the body and the credentials of a request.
    app.router.redirect_slashes = False
    app.shortcut = None if middleware else turns
    return app


class Application(Starlette):
    """Starlette, which the usual chat request passes by: no table, no middleware.

    Nothing is missed on the short way, because an Endpoint answers for its own errors.
    """

    shortcut: ASGIApp | None = None

    def adopt(self, other: "Application") -> None:
        """Answer new requests as another application does; running ones end where they began."""
        stack = other.build_middleware_stack()
        self.shortcut, self.middleware_stack = other.shortcut, stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.shortcut is not None and scope["type"] == "http" and scope["method"] == "POST":
            place = USUAL.get(scope.get("raw_path", b""))
            if place is not None:
                scope["path_params"] = {"place": place}
                await self.shortcut(scope, receive, send)
                return
        await super().__call__(scope, receive, send)


class ApiRoute(BaseRoute):
    """A route by the API resource that a path means, whatever its prefix and slashes.

    With `chat` it takes new chat completions only; stored ones, at the same path, are not meant.
    """

    def __init__(self, endpoint: ASGIApp, *, chat: bool = False) -> None:
        self._endpoint = endpoint
        self._chat = chat

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or (self._chat and scope["method"] != "POST"):
            return Match.NONE, {}
        raw_path = scope.get("raw_path") or scope["path"].encode()
        if self._chat and b"completions" not in raw_path:
            return Match.NONE, {}
        place = locate(raw_path)
        if place is None or (self._chat and not place.chat):
            return Match.NONE, {}
        return Match.FULL, {"path_params": {"place": place}}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoint(scope, receive, send)


def _is_api(route: BaseRoute) -> bool:
    """Whether forwarding would take a route's requests; one without a path may be anything."""
    path = getattr(route, "path", None)
    return path is None or locate(path.encode()) is not None


def _chat_request(asked: Asked) -> ChatRequest:
    place: Place = asked.params["place"]
    return ChatRequest(
        path=place.path,
        query=asked.query,
        headers=asked.headers,
        body=asked.body,
        caller=asked.caller,
        request_id=asked.request_id,
        azure_deployment=place.deployment,
    )


async def _refuse(request: Request, error: Exception) -> Response:
    known = error if isinstance(error, UsherError) else UsherError("The gateway failed.")
    return _response(request, known)


async def _refuse_http(request: Request, error: Exception) -> Response:
    """Starlette's own refusals, in OpenAI's shape."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    asked = f"{request.method} {request.url.path[:200]}"
    match status:
        case 404:
            return _response(request, NotFound(f"Unknown request URL: {asked}."))
        case 405:
            return _response(request, MethodNotAllowed(f"Not allowed here: {asked}."))
    refusal = BadRequest("The request could not be read.")
    refusal.status = status
    return _response(request, refusal)


async def _apologise(request: Request, _: Exception) -> Response:
    return await _refuse(request, UsherError("The gateway failed."))


def _response(request: Request, error: UsherError) -> Response:
    """An error of ours outside any endpoint, with the id that an endpoint's would have."""
    reply = error_reply(error)
    request_id = read_head(request.scope["headers"]).request_id
    reply.headers.append((b"x-request-id", request_id.encode()))
    response = Response(reply.body, reply.status)
    response.raw_headers.extend(reply.headers)
    return response
