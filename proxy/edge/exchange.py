"""A connection and the work for it come in; every way in which that can end is handled here."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import msgspec
from starlette.types import Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from proxy.edge.admit import Gate
from proxy.edge.auth import Door
from proxy.edge.head import Head, read_head
from proxy.edge.intake import connection_of, loop_of
from proxy.edge.lump import lump_of
from proxy.edge.respond import Response
from proxy.edge.watch import ClientGone, Watch
from proxy.errors import NotOffered, Unavailable, UpstreamError, UsherError
from proxy.keys.limiter import Admission, Lease
from proxy.observe.log import REQUEST_ID
from proxy.observe.metrics import Endpoint, Metrics
from proxy.plan.exchange import Reply
from proxy.plan.identity import Caller
from proxy.settings import Server
from proxy.wire import Headers

LAST_WORDS_SECONDS = 2.0
CLIENT_CLOSED = 499
"""nginx's number for a client that left before it had an answer; only counted, never sent."""


class Exchange(msgspec.Struct, frozen=True):
    """One request, as the work for it sees it; `leases` are given back when it is over."""

    scope: Scope
    receive: Receive
    head: Head
    watch: Watch
    leases: list[Lease]


Work = Callable[[Exchange], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Edge:
    """What all endpoints share."""

    settings: Server
    door: Door
    gate: Gate
    metrics: Metrics
    log: FilteringBoundLogger
    limiter: Admission | None = None

    def enter(self, head: Head) -> Caller:
        """Whose request it is. Raises Unauthorized, BadRequest and, for a WebSocket, NotOffered.

        The parser takes what follows an offer of a WebSocket for its frames, so that a request
        with a body would go up without it.
        """
        caller = self.door.admit(head)
        if head.upgrade == b"websocket":
            raise NotOffered("WebSocket connections are not forwarded; use the HTTP API.")
        return caller

    async def admit(self, exchange: Exchange, caller: Caller, tokens: int = 0) -> Headers:
        """Let a key's request in within its limits; what to tell its client about them.

        `tokens` is an estimate, reserved until the answer reports them. Raises LimitReached.
        """
        if self.limiter is None or caller.grant is None:
            return []
        lease = await self.limiter.admit(caller.grant, tokens)
        exchange.leases.append(lease)
        return lease.headers

    async def serve(
        self, kind: Endpoint, work: Work, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Do the work and write its reply; returns when the response or the client is gone."""
        began = time.perf_counter()
        head = read_head(scope["headers"])
        REQUEST_ID.set(head.request_id)

        def on_start() -> None:
            if kind == "chat":
                self.metrics.first_chunk.observe(time.perf_counter() - began)

        connection, lump = connection_of(scope), lump_of(scope)
        watch = Watch(receive, loop_of(scope), connection.watch if connection else None)
        # With the last message the client may leave; what follows is ours to finish.
        answer = lump.answer if lump else None
        response = Response(send, head.request_id, on_start, watch.stop, answer)
        try:
            with watch:
                exchange = Exchange(scope, receive, head, watch, [])
                await self._run(kind, work, exchange, response)
        finally:
            self.metrics.requests.add(kind, response.status or CLIENT_CLOSED)

    async def _run(
        self, kind: Endpoint, work: Work, exchange: Exchange, response: Response
    ) -> None:
        try:
            self.gate.enter()
        except Unavailable as error:
            await self._fail(kind, response, error)
            return
        try:
            await response.write(await work(exchange), self.settings.ping_seconds)
        except UsherError as error:
            if not exchange.watch.gone:
                await self._fail(kind, response, error)
        except ClientGone:
            raise
        except asyncio.CancelledError:
            if exchange.watch.gone:
                raise
            # Otherwise it is the server that gives up on what still runs.
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS_SECONDS):
                    await self._fail(kind, response, Unavailable("The gateway is shutting down."))
        except BaseException:
            # A bug of ours: the client gets a clean end, the server's log the traceback.
            if not exchange.watch.gone:
                await self._fail(kind, response, UsherError("The gateway failed."))
            raise
        finally:
            for lease in exchange.leases:
                lease.leave()
            self.gate.leave()

    async def _fail(self, kind: Endpoint, response: Response, error: UsherError) -> None:
        response.closing = self.gate.draining
        # A turn counts each of its calls itself, also those that no client hears of.
        if isinstance(error, UpstreamError) and kind != "chat":
            self.metrics.upstream_errors.add(error.code or "other")
        if error.status >= 500 or response.status is not None:
            self.log.warning("request_failed", code=error.code, status=error.status)
        await response.fail(error)
