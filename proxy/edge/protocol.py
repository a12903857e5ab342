"""A client's bytes come in; uvicorn's HTTP/1.1, with a limit for headers and refusals in JSON."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from proxy.edge.fill import LARGEST_BYTES, Fill
from proxy.edge.intake import CONNECTION, Intake
from proxy.edge.lump import LUMP, Lump
from proxy.edge.repeat import Found, KnownHead
from proxy.edge.respond import error_body
from proxy.errors import BadRequest, ClientTooSlow, HeadersTooLarge, UsherError

MAX_HEAD_BYTES = 64 * 1024
HEADS_LEARNED = 4
"""In a row, before a connection counts as one whose heads are all different."""
_OFFER = re.compile(rb"(?i)\r\nupgrade:(?![ \t]*websocket)")


class Protocol(HttpToolsProtocol):
    """One connection.

    The parser itself would collect headers of any size. A head that arrives within one read is
    not measured: a read is small enough.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._expects_head = True
        self._in_head = False
        self._head_bytes = self._reads = 0
        self._intake: Intake | None = None
        self._heads = 0
        self._known: KnownHead | None = None
        self._learns = HEADS_LEARNED
        self._owed = 0
        self._on_lost: Callable[[], None] | None = None
        self._lost = False
        self._idle_since = 0.0
        self._idle_timer: asyncio.TimerHandle | None = None

    @property
    def wanted(self) -> object:
        """What must come from the client next; None when it is not the client who is waited for.

        The same for the whole of a head, and for a body until more of it is here. Nothing while
        an answer is on its way: it must not be cut.
        """
        cycle: RequestResponseCycle | None = self.cycle
        if self.flow.read_paused:
            return None
        if cycle is None:
            return "head", 0
        answering = cycle.response_started or self._in_head
        if answering and not cycle.response_complete:
            return None
        if self._in_head:
            return "head", id(cycle)
        return None if self._expects_head else ("body", self._reads)

    def give_up(self) -> None:
        """Close the connection; who has begun a request is told why."""
        if self._in_head or not self._expects_head:
            self._refuse(ClientTooSlow("The request did not arrive in time."))
        else:
            self.transport.close()

    async def read_rest(self, begun: bytes, length: int | None, cap: int) -> bytes:
        """The body that is arriving; see Connection. Raises ClientGone."""
        if length is not None and length <= LARGEST_BYTES:
            self._owed = 0
            fill = Fill(self, self.loop, begun, length)
            self.transport.set_protocol(fill)
            self.flow.resume_reading()
            return await fill.wait()
        intake = self._intake = Intake(self.loop, cap - len(begun))
        self.flow.resume_reading()
        try:
            return b"".join((begun, *await intake.wait()))
        finally:
            if self._intake is intake:
                self._intake = None

    def watch(self, on_lost: Callable[[], None] | None) -> None:
        """Call that when the client goes; see Connection."""
        self._on_lost = on_lost
        if on_lost is not None:
            self.flow.resume_reading()  # or its end would not be read either
            if self._lost:
                on_lost()

    def body_came(self) -> None:
        """Bytes of a body went past the parser."""
        self._reads += 1

    def body_ended(self) -> None:
        """A body that went past the parser is whole: a new one reads what follows."""
        self.parser = new_parser(self)
        self.transport.set_protocol(self)
        self.on_message_complete()

    def data_received(self, data: bytes) -> None:
        self._reads += 1
        if self._owed:
            data = self._add_to_body(data)
            if not data:
                return
        fresh = self._expects_head and not self._in_head
        if fresh and self._known is not None and self._is_free():
            found = self._known.measure(data)
            if found is not None:
                self._begin(self._known, found, data)
                return
        self._parse(data)
        if fresh and self._learns and not self._in_head:
            self._learn(data)

    def _parse(self, data: bytes) -> None:
        self._heads = 0
        if self._expects_head and data.find(b"pgrade:", 0, 4096) >= 0:
            data = ignore_offer(data)
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._refuse(HeadersTooLarge(f"The headers are over {MAX_HEAD_BYTES} bytes."))

    def _is_free(self) -> bool:
        """Whether a request would be answered at once, by a connection that stays."""
        cycle: RequestResponseCycle | None = self.cycle
        return (cycle is None or cycle.response_complete) and not self.transport.is_closing()

    def _learn(self, data: bytes) -> None:
        """Keep the head that was just parsed, if there was one and the connection stays."""
        cycle: RequestResponseCycle | None = self.cycle
        if self._heads != 1 or cycle is None or not cycle.keep_alive:
            return
        self._learns -= 1
        self._known = KnownHead.learn(data, dict(self.scope))

    def _begin(self, known: KnownHead, found: Found, data: bytes) -> None:
        """Begin a request whose head needs no parser, as uvicorn begins others."""
        self._learns = HEADS_LEARNED
        self._expects_head = False
        self.scope = known.scope(found.length, self.app_state.copy())  # type: ignore[assignment]  # of the same keys
        self.scope[CONNECTION] = self  # type: ignore[literal-required]  # as below
        self.cycle = RequestResponseCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=True,
            on_response=self.on_response_complete,
        )
        self._lump()
        self._start_asgi_task(self.cycle, self.app)
        self._owed = found.length
        rest = self._add_to_body(data[found.start :])
        if rest:
            self._parse(rest)

    def _add_to_body(self, data: bytes) -> bytes:
        """Take what is missing of a body whose head needed no parser, and return the rest."""
        body, rest = data[: self._owed], data[self._owed :]
        self._owed -= len(body)
        if body:
            self.on_body(body)
        if not self._owed:
            self.on_message_complete()
        return rest

    def _lump(self) -> None:
        self.scope[LUMP] = self.cycle.transport = Lump(self.cycle)  # type: ignore[literal-required]  # a key of our own

    def on_message_begin(self) -> None:
        self._in_head = True
        self._heads += 1
        self._head_bytes = 0
        super().on_message_begin()
        self.scope[CONNECTION] = self  # type: ignore[literal-required]  # a key of our own

    def on_headers_complete(self) -> None:
        self._in_head = self._expects_head = False
        before = self.cycle
        super().on_headers_complete()
        # An answer to HEAD has no body that its head could wait for.
        if self.cycle is not before and self.scope["method"] != "HEAD":
            self._lump()

    def on_body(self, body: bytes) -> None:
        cycle: RequestResponseCycle = self.cycle
        if self._intake is not None:
            self._intake.add(body)
        elif cycle.body or cycle.response_complete:
            super().on_body(body)
        else:
            cycle.body = body  # type: ignore[assignment]  # not copied, and most bodies are one piece
            if len(body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            cycle.message_event.set()

    def on_message_complete(self) -> None:
        self._expects_head = True
        super().on_message_complete()
        # At once: the same read may hold the beginning of another request's body.
        intake, self._intake = self._intake, None
        if intake is not None:
            intake.end()

    def on_response_complete(self) -> None:
        """As uvicorn does, but with one timer for all the requests of a connection."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
            return
        self._idle_since = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._end_idle)

    def _end_idle(self) -> None:
        """Hang up if nothing came since the last answer for as long as that may be."""
        self._idle_timer = None
        if not self._is_free() or self._in_head or not self._expects_head:
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._idle_timer = self.loop.call_later(left, self._end_idle)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._lost = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._on_lost is not None:
            self._on_lost()
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and isinstance(cycle.transport, Lump):
            cycle.transport.part()
        if self._intake is not None:
            self._intake.lose()

    def send_400_response(self, msg: str) -> None:
        self._refuse(BadRequest(msg))

    def _unsupported_upgrade_warning(self) -> None:
        """A WebSocket is refused by the application, in words that its client can show."""

    def _refuse(self, error: UsherError) -> None:
        """Answer what is no request, unless that would get into the answer to an earlier one."""
        cycle: RequestResponseCycle | None = self.cycle
        answering = cycle is not None and cycle.response_started and not cycle.response_complete
        if not answering and not self.pipeline:
            body = error_body(error)
            self.transport.write(
                STATUS_LINE[error.status]
                + b"content-type: application/json\r\n"
                + b"content-length: %d\r\n" % len(body)
                + b"connection: close\r\n\r\n"
                + body
            )
        self.transport.close()


def new_parser(protocol: HttpToolsProtocol) -> httptools.HttpRequestParser:
    """A parser as uvicorn makes it: requests may follow one that announces its connection's end."""
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def ignore_offer(data: bytes) -> bytes:
    """Hide an Upgrade header from the parser, which would take the body for another protocol.

    Java's client offers HTTP/2 with its first request. A server may ignore that (RFC 9110 §7.8);
    under the name of another hop-by-hop header it does no harm.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    return _OFFER.sub(b"\r\ntrailer:", head) + end + rest
