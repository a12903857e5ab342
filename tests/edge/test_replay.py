"""A cassette as an upstream."""

import pytest

from proxy.edge.replay import Replay
from proxy.upstream.cassette import Cassette, Interaction
from tests.edge.driver import CHAT, JSON_TYPE, SSE_TYPE, Client, ask

pytestmark = pytest.mark.anyio

_EVENTS = b"data: 1\n\ndata: 2\r\n\r\ndata: [DONE]\n\n"


def _replay(*interactions: Interaction) -> tuple[Replay, list[tuple[str, str, str | None]]]:
    told: list[tuple[str, str, str | None]] = []
    return Replay(Cassette(interactions), lambda *one: told.append(one)), told


async def test_an_answer_is_played_as_it_was() -> None:
    """Status, headers and bytes."""
    replay, told = _replay(Interaction("POST", CHAT, b"{}", 429, JSON_TYPE, b'{"error":1}'))
    answered = await ask(replay, "POST", CHAT, b"{ }")
    assert (answered.status, answered.body) == (429, b'{"error":1}')
    assert answered.headers == {"content-type": "application/json", "content-length": "11"}
    assert told == [("POST", CHAT, None)]


async def test_a_stream_comes_event_by_event() -> None:
    """Recorders keep a stream as one text; clients should not get it as one piece."""
    replay, _ = _replay(Interaction("POST", CHAT, b"{}", 200, SSE_TYPE, _EVENTS))
    answered = await ask(replay, "POST", CHAT, b"{}")
    assert answered.chunks == [b"data: 1\n\n", b"data: 2\r\n\r\n", b"data: [DONE]\n\n"]
    assert answered.complete


async def test_what_is_not_recorded_is_a_404() -> None:
    """With the reason, in OpenAI's shape; SDKs do not repeat it."""
    replay, told = _replay(Interaction("GET", "/v1/models?a=1", b"", 200, JSON_TYPE, b"{}"))
    answered = await ask(replay, "GET", "/v1/models")
    assert answered.status == 404
    assert b'"code":"not_recorded"' in answered.body
    assert told[0][2] is not None
    assert (await ask(replay, "GET", "/v1/models?a=1")).status == 200


async def test_a_client_that_leaves_is_nobody() -> None:
    """Its half request plays nothing."""
    replay, told = _replay(Interaction("POST", CHAT, b"half", 200, JSON_TYPE, b"{}"))
    client = Client(b"half", cut=True)
    client.leave()
    assert (await client.ask(replay, "POST", CHAT)).status == 0
    assert told == []
