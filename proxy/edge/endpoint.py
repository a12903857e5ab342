"""A whole request comes in, read and its caller known; what a function answers to it goes out."""

from collections.abc import Awaitable, Callable

from starlette.types import Receive, Scope, Send

from proxy.edge.asked import Asked
from proxy.edge.body import decode_body, read_body, take_body
from proxy.edge.exchange import Edge, Exchange
from proxy.edge.intake import connection_of
from proxy.observe.metrics import Endpoint as Kind
from proxy.plan.exchange import Reply
from proxy.wire import Headers

CHARS_PER_TOKEN = 4
"""How a body's tokens are guessed, for limits of tokens, until its answer reports them."""

Answer = Callable[[Asked], Awaitable[Reply]]


class Endpoint:
    """A raw ASGI endpoint around a function."""

    def __init__(self, edge: Edge, answer: Answer, kind: Kind = "other") -> None:
        self._edge = edge
        self._answer = answer
        self._kind: Kind = kind

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return self._edge.serve(self._kind, self._work, scope, receive, send)

    async def _work(self, exchange: Exchange) -> Reply:
        scope, head = exchange.scope, exchange.head
        headers = scope["headers"]
        caller = self._edge.enter(head)
        cap = self._edge.settings.max_body_bytes
        body = take_body(scope, cap)
        if body is None:
            body = await read_body(exchange.receive, head.length, cap, connection_of(scope))
        exchange.watch.start()
        if head.encoding:
            body = await decode_body(body, head.encoding, cap)
            headers = [pair for pair in headers if pair[0] != b"content-encoding"]
        told: Headers = []
        if caller.grant is not None:
            told = await self._edge.admit(exchange, caller, len(body) // CHARS_PER_TOKEN)
        reply = await self._answer(
            Asked(
                method=scope["method"],
                path=scope["path"],
                query=scope["query_string"].decode("latin-1"),
                params=scope.get("path_params", {}),
                headers=headers,
                body=body,
                caller=caller,
                request_id=head.request_id,
            )
        )
        reply.headers.extend(told)
        return reply
