"""The HTTP side of the writing model."""

import asyncio

import orjson
import pytest

from proxy.errors import ConnectFailed
from proxy.ledger.usage import Row
from proxy.memory.writer import ChatWriter, Errand, Place, WriterFailed
from proxy.upstream.transport import Prepared, UpstreamRequest
from tests.fakes.transport import FakeTransport, Outcome
from tests.memory.scene import ALI
from tests.turns import JSON_TYPE, call, completion

pytestmark = pytest.mark.anyio

ERRAND = Errand(ALI, "r", "open")
BODY = {"messages": [], "temperature": 0.4, "max_tokens": 10}


def make(*outcomes: Outcome, seconds: float = 5.0) -> tuple[ChatWriter, FakeTransport, list[Row]]:
    transport, rows = FakeTransport(*outcomes), list[Row]()
    place = Place("p", "m", "http://x/v1/chat/completions", [])
    return ChatWriter(transport, place, seconds, rows.append), transport, rows


def refused(message: str) -> Prepared:
    return Prepared(400, JSON_TYPE, orjson.dumps({"error": {"message": message}}))


async def test_calls_come_back() -> None:
    """The answer's calls, and a row of the memory context with its tokens."""
    writer, _, rows = make(completion(None, [call("set_memory", {"key": "a", "value": "b"})]))
    answer = await writer.complete(BODY, ERRAND)
    assert [c.name for c in answer.calls] == ["set_memory"]
    assert [(r.context, r.prompt_tokens, r.outcome, r.user) for r in rows] == [
        ("memory", 10, "ok", "ali")
    ]


async def test_a_parameter_that_is_refused_is_left_out() -> None:
    """One retry without it; later requests never have it."""
    writer, transport, rows = make(refused("temperature is not supported"), *[completion("x")] * 2)
    await writer.complete(BODY, ERRAND)
    await writer.complete(BODY, ERRAND)
    sent = [orjson.loads(r.body) for r in transport.sent if isinstance(r.body, bytes)]
    assert ["temperature" in body for body in sent] == [True, False, False]
    assert [row.outcome for row in rows] == ["http_400", "ok", "ok"]


@pytest.mark.parametrize(
    ("outcome", "name"),
    [
        (ConnectFailed("no"), "upstream_unreachable"),
        (Prepared(500, JSON_TYPE, b"oops"), "http_500"),
        (Prepared(200, JSON_TYPE, b"{}"), "malformed"),
        (Prepared(200, JSON_TYPE, b" " * 1_100_000), "malformed"),
        (refused("the model is gone"), "http_400"),
    ],
)
async def test_failures_have_names(outcome: Outcome, name: str) -> None:
    """Each is a row of the books, and never a provider's words."""
    writer, _, rows = make(outcome)
    with pytest.raises(WriterFailed, match=name):
        await writer.complete(BODY, ERRAND)
    assert [row.outcome for row in rows] == [name]


class Slow(FakeTransport):
    """Never answers."""

    async def send(self, request: UpstreamRequest) -> Prepared:
        await asyncio.sleep(60)
        return await super().send(request)


async def test_a_slow_model() -> None:
    """Its time is limited."""
    writer, _, rows = make(seconds=0.01)
    writer.transport = Slow()
    with pytest.raises(WriterFailed, match="timeout"):
        await writer.complete(BODY, ERRAND)
    assert rows[0].outcome == "timeout"
