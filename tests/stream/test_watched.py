"""The end of a stream is heard of exactly once."""

from collections.abc import AsyncGenerator

import pytest

from proxy.errors import StreamTruncated
from proxy.stream.watched import Watched

pytestmark = pytest.mark.anyio


async def _chunks(error: Exception | None = None) -> AsyncGenerator[bytes]:
    yield b"a"
    if error is not None:
        raise error
    yield b"b"


class Ends:
    """Remembers what it heard."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def __call__(self, outcome: str) -> None:
        self.heard.append(outcome)


async def test_a_whole_stream_ends_well() -> None:
    """Closing it afterwards changes nothing."""
    ends = Ends()
    watched = Watched(_chunks(), ends)
    assert [chunk async for chunk in watched] == [b"a", b"b"]
    await watched.aclose()
    assert ends.heard == ["ok"]


async def test_an_error_names_itself() -> None:
    """The code of the error is the outcome, and the reader gets the error."""
    ends = Ends()
    watched = Watched(_chunks(StreamTruncated("cut")), ends)
    with pytest.raises(StreamTruncated):
        assert [chunk async for chunk in watched]
    assert ends.heard == ["stream_truncated"]


async def test_a_stream_that_nobody_began_still_ends() -> None:
    """A client may leave between the head and the first chunk."""
    ends = Ends()
    watched = Watched(_chunks(), ends)
    await watched.aclose()
    await watched.aclose()
    assert ends.heard == ["client_gone"]


async def test_a_reader_that_stops_has_gone() -> None:
    """Half a stream is an outcome of its own."""
    ends = Ends()
    watched = Watched(_chunks(), ends)
    assert await anext(watched) == b"a"
    await watched.aclose()
    assert ends.heard == ["client_gone"]
