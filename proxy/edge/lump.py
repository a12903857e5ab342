"""A response's head and body come in; the head goes out in one write with the body's beginning."""

import asyncio
import re
from collections.abc import Callable
from typing import TypeAlias

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from proxy.wire import Headers

LUMP = "usher.lump"
"""Where a scope has its response's lump, and so the short ways; only our own server has one."""
Answer: TypeAlias = Callable[[int, Headers, bytes], bool]
"""Takes status, headers and body; False when nothing was sent and the usual way has to be gone."""

JOINED_BYTES = 64 * 1024
"""To copy a body of up to so much costs less than to hand several pieces to the system."""
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Lump(asyncio.Transport):
    """Stands between one response and its connection: a system call less per response.

    Whoever begins a response sends the first bytes of its body right after, so that nothing waits.
    """

    def __init__(self, cycle: RequestResponseCycle) -> None:
        super().__init__()
        self._cycle = cycle
        self._transport: asyncio.Transport = cycle.transport
        self._head: bytes | None = None
        self._begun = False
        self._on_end: Callable[[], None] = cycle.on_response
        cycle.on_response = self.end

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._begun:
            head, self._head = self._head, None
            if head is None:
                self._transport.write(data)
            else:
                self._transport.writelines((head, data))
        elif self._cycle.response_started:
            self._begun = True
            self._head = bytes(data)
        else:
            self._transport.write(data)  # an interim answer

    def answer(self, status: int, headers: Headers, body: bytes) -> bool:
        """Send a whole response at once: what uvicorn does in two steps, written out once.

        `headers` frame the body. What uvicorn would refuse or wait for is left to uvicorn.
        """
        cycle = self._cycle
        if cycle.response_started or cycle.disconnected or cycle.flow.write_paused:
            return False
        lines = [name + b": " + value for name, value in (*cycle.default_headers, *headers)]
        if (b"connection", b"close") in headers:
            cycle.keep_alive = False
        elif not cycle.keep_alive:
            lines.append(b"connection: close")
        head = b"\r\n".join(lines)
        breaks = len(lines) - 1
        if head.count(b"\n") != breaks or head.count(b"\r") != breaks or _CONTROL.search(head):
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        pieces = (STATUS_LINE[status], head, b"\r\n\r\n", body)
        if len(body) <= JOINED_BYTES:
            self._transport.write(b"".join(pieces))
        else:
            self._transport.writelines(pieces)
        cycle.message_event.set()
        if not cycle.keep_alive:
            self._transport.close()
        cycle.on_response()
        return True

    def take_body(self) -> bytes | None:
        """The request's body, when all of it is here and nobody has received any of it."""
        cycle = self._cycle
        if cycle.more_body or cycle.disconnected or cycle.response_complete:
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        cycle.message_event.clear()
        return body

    def end(self) -> None:
        """The response is over."""
        self._on_end()
        self.part()

    def part(self) -> None:
        """Let go of the response, which would hold its request's body until a collection."""
        cycle = self._cycle
        cycle.transport = self._transport
        cycle.body = bytearray()
        cycle.scope.pop(LUMP, None)  # type: ignore[misc]  # a key of our own

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        head, self._head = self._head, None
        if head is not None:
            self._transport.write(head)
        self._transport.close()


def lump_of(scope: Scope) -> Lump | None:
    """The lump of a request's response, when our own server has read the request."""
    lump: Lump | None = scope.get(LUMP)
    return lump
