"""Responses on the wire: how many writes they take, and that nothing is held back."""

import asyncio
from typing import cast

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from proxy.edge.lump import Lump


class Wire(asyncio.Transport):
    """A connection that remembers its writes."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class Cycle:
    """What a lump sees of uvicorn's response."""

    def __init__(self) -> None:
        self.transport = Wire()
        self.response_started = False


@pytest.fixture
def cycle() -> Cycle:
    return Cycle()


def lump_of(cycle: Cycle) -> Lump:
    return Lump(cast("RequestResponseCycle", cycle))


def test_head_goes_out_with_the_first_bytes_of_the_body(cycle: Cycle) -> None:
    """One system call for both; what follows goes out as it comes."""
    lump = lump_of(cycle)
    cycle.response_started = True
    lump.write(b"HTTP/1.1 200 OK\r\n\r\n")
    assert cycle.transport.writes == []
    lump.write(b"first")
    lump.write(b"second")
    assert cycle.transport.writes == [b"HTTP/1.1 200 OK\r\n\r\nfirst", b"second"]


def test_interim_answers_are_not_held(cycle: Cycle) -> None:
    """A client that waits for 100 Continue sends its body after it only."""
    lump = lump_of(cycle)
    lump.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert cycle.transport.writes == [b"HTTP/1.1 100 Continue\r\n\r\n"]


def test_a_head_without_body_goes_out_before_the_end(cycle: Cycle) -> None:
    """A response that is given up after its head still shows its status."""
    lump = lump_of(cycle)
    cycle.response_started = True
    lump.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
    assert not lump.is_closing()
    lump.close()
    assert cycle.transport.writes == [b"HTTP/1.1 502 Bad Gateway\r\n\r\n"]
    assert lump.is_closing()
