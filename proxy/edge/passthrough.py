"""Any other API request comes in; it streams up, and its answer streams back, byte for byte."""

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
from starlette.types import Message, Receive, Scope, Send

from proxy.edge.body import read_body
from proxy.edge.exchange import Edge, Exchange
from proxy.edge.multipart import Held, find_boundary, hold_form
from proxy.edge.paths import Place
from proxy.edge.tee import Tee
from proxy.edge.watch import ClientGone
from proxy.keys.limiter import check_model
from proxy.ledger.store import Ledger
from proxy.ledger.usage import Row, read_usage
from proxy.observe.metrics import upstream_kind
from proxy.plan.exchange import Reply
from proxy.plan.identity import Caller
from proxy.settings import Settings
from proxy.upstream.call import call
from proxy.upstream.headers import request_headers, response_headers
from proxy.upstream.target import Target, Targets, url_for
from proxy.upstream.transport import Transport, UpstreamRequest, UpstreamResponse
from proxy.wire import Headers, JSONObject

Body: TypeAlias = bytes | AsyncIterator[bytes] | None

MAX_HELD = 32 * 1024 * 1024
"""Of a form whose file stands before its model; audio is at most 25 MB."""
STORED = ("/files", "/uploads/")
"""Forms for these have no model."""


@dataclass(frozen=True, slots=True)
class Forward:
    """What forwarding needs; `transports` are keyed by the kind of a target."""

    settings: Settings
    transports: Mapping[str, Transport]
    targets: Targets
    ledger: Ledger


class Passthrough:
    """A raw ASGI endpoint that forwards what it does not understand."""

    def __init__(self, edge: Edge, forward: Forward) -> None:
        self._edge = edge
        self._forward = forward

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._edge.serve("passthrough", self._work, scope, receive, send)

    async def _work(self, exchange: Exchange) -> Reply:
        caller = self._edge.enter(exchange.head)
        told = await self._edge.admit(exchange, caller)
        body, model = await self._body(exchange, caller)
        target = self._target(model, caller)
        entry = Entry(self._forward.ledger, exchange.head.request_id, caller, target)
        response = await self._send(exchange, caller, target, body)
        if response.status >= 400 and (kind := upstream_kind(f"http_{response.status}")):
            self._edge.metrics.upstream_errors.add(kind)
        entry.adopt(response.headers)
        headers = response_headers(response.headers)
        headers.extend(told)
        return Reply(response.status, headers, Relay(response, entry))

    async def _body(self, exchange: Exchange, caller: Caller) -> tuple[Body, str | None]:
        """The body, and the model that it names; None when nobody has to know.

        Read to its end only when it is short or its model has to be known. Raises Forbidden for a
        key of few models when that is not one of them, or cannot be read.
        """
        head, receive = exchange.head, exchange.receive
        if not head.has_body:
            exchange.watch.start()
            return None, None
        bound = caller.grant is not None and bool(caller.grant.models)
        asked = bound or bool(self._forward.settings.providers)
        boundary = find_boundary(head.content_type) if asked else None
        if boundary is not None:
            return await self._form(exchange, caller, boundary)
        if bound or (asked and b"json" in head.content_type.lower()):
            body = await read_body(receive, head.length, self._edge.settings.max_body_bytes)
            exchange.watch.start()
            model = _model(body)
            _check(exchange, caller, model)
            return body, model
        first = await receive()
        if first["type"] == "http.disconnect":
            raise ClientGone
        if first.get("more_body", False):
            return _upload(exchange, first), None
        exchange.watch.start()
        return bytes(first.get("body", b"")), None

    async def _form(
        self, exchange: Exchange, caller: Caller, boundary: bytes
    ) -> tuple[Body, str | None]:
        """A form, read until its model is known; the rest streams.

        For a key of few models the rest is looked at, too: a second model would win elsewhere.
        """
        bound = caller.grant is not None and bool(caller.grant.models)
        room = min(self._edge.settings.max_body_bytes, MAX_HELD)
        held = await hold_form(exchange, boundary, room, strict=bound)
        place: Place = exchange.scope["path_params"]["place"]
        if held.field.model is not None or not (held.whole and place.path.startswith(STORED)):
            _check(exchange, caller, held.field.model or "")
        if held.whole:
            exchange.watch.start()
            return held.body, held.field.model
        return _rest(exchange, held, strict=bound), held.field.model

    def _target(self, model: str | None, caller: Caller) -> Target:
        if caller.grant is not None and caller.grant.upstream is not None:
            return self._forward.targets.named(caller.grant.upstream)
        if self._forward.settings.providers and model is not None:
            return self._forward.targets.choose(model)
        return self._forward.targets.default

    async def _send(
        self,
        exchange: Exchange,
        caller: Caller,
        target: Target,
        body: Body,
    ) -> UpstreamResponse:
        scope = exchange.scope
        place: Place = scope["path_params"]["place"]
        upstream = self._forward.settings.upstream
        request = UpstreamRequest(
            method=scope["method"],
            url=url_for(
                target, place.path, scope["query_string"].decode("latin-1"), place.deployment
            ),
            headers=request_headers(
                scope["headers"],
                target,
                intercepted=False,
                own_credentials=not caller.used_gateway_key,
            ),
            body=body,
            connect_seconds=upstream.connect_seconds,
            idle_seconds=upstream.idle_seconds,
        )
        return await call(self._forward.transports[target.kind], request, upstream.retries)


class Entry:
    """The line of the ledger for one forwarded request, written when its reply states a usage."""

    def __init__(self, ledger: Ledger, request_id: str, caller: Caller, target: Target) -> None:
        self._ledger = ledger
        self._request_id = request_id
        self._caller = caller
        self._target = target
        self._started_at = time.time()
        self._clock = time.perf_counter()

    def adopt(self, headers: Headers) -> None:
        """Take the id that the client sees: an upstream's own replaces ours on the response."""
        for name, value in headers:
            if name.lower() == b"x-request-id":
                self._request_id = value.decode("latin-1")

    def write(self, status: int, usage: JSONObject, model: str | None) -> None:
        tokens = read_usage(usage)
        self._ledger.record(
            Row(
                request_id=self._request_id,
                tenant=self._caller.tenant,
                key=self._caller.key,
                user=self._caller.user,
                context="main",
                round=1,
                provider=self._target.provider,
                model=model or "",
                answered_model=model,
                prompt_tokens=tokens.prompt,
                cached_tokens=tokens.cached,
                completion_tokens=tokens.completion,
                reasoning_tokens=tokens.reasoning,
                cost_nano_usd=tokens.cost_nano_usd,
                cost_source=None if tokens.cost_nano_usd is None else "provider",
                started_at=self._started_at,
                latency_ms=(time.perf_counter() - self._clock) * 1000,
                tools_sent=None,
                tools_deferred=None,
                tokens_avoided=None,
                outcome="ok" if status < 400 else f"http_{status}",
                cache_write_tokens=tokens.cache_write,
            )
        )


class Relay:
    """The upstream's reads as they come; the books are done once all of them are on their way."""

    def __init__(self, response: UpstreamResponse, entry: Entry) -> None:
        self._response = response
        self._chunks = response.chunks()
        self._tee = Tee(response.headers)
        self._entry = entry
        self._complete = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            self._complete = True
            raise
        self._tee.feed(chunk)
        return chunk

    async def aclose(self) -> None:
        await self._response.aclose()
        if not self._complete:
            return
        usage, model = await self._tee.read()
        if usage is not None:
            self._entry.write(self._response.status, usage, model)


def _check(exchange: Exchange, caller: Caller, model: str) -> None:
    if caller.grant is not None:
        place: Place = exchange.scope["path_params"]["place"]
        check_model(caller.grant, model, place.deployment)


async def _rest(exchange: Exchange, held: Held, *, strict: bool) -> AsyncIterator[bytes]:
    yield held.body
    message: Message = {"type": "http.request", "body": b"", "more_body": True}
    async for piece in _upload(exchange, message):
        if strict:
            held.field.feed(piece)
        yield piece


async def _upload(exchange: Exchange, message: Message) -> AsyncIterator[bytes]:
    """The client's body at the pace at which the upstream takes it."""
    while True:
        if message["type"] == "http.disconnect":
            exchange.watch.gone = True
            raise ClientGone
        if piece := message.get("body", b""):
            yield piece
        if not message.get("more_body", False):
            break
        message = await exchange.receive()
    exchange.watch.start()


class _Named(msgspec.Struct):
    model: str = ""


def _model(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Named).model
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
