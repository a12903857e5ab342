"""A response's head and body come in; the head goes out in one write with the body's beginning."""

import asyncio

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


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

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        head, self._head = self._head, None
        if head is not None:
            self._transport.write(head)
        self._transport.close()
