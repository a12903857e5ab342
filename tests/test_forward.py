"""Requests that are not for us: bytes up, bytes down."""

import orjson
import pytest

from proxy.errors import StreamTruncated
from proxy.plan.exchange import Reply
from proxy.upstream.transport import Prepared
from tests.turns import (
    JSON_TYPE,
    SSE_TYPE,
    completion,
    read,
    request,
    stage,
)

pytestmark = pytest.mark.anyio


def _header(reply: Reply, name: bytes) -> bytes | None:
    return dict(reply.headers).get(name)


@pytest.mark.item(
    "catalog/empty",
    "catalog/null",
    "params/several-choices",
    "params/logprobs",
    "params/functions",
    "params/prefill",
    "params/choice-unknown",
)
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"model": "m" , "messages":[]}', "no tools"),
        (b'{"model":"m","messages":[],"tools":null}', "no tools"),
        (b'{"model":"m","messages":[],"tools":[]}', "no tools"),
        (b"{broken", "not json"),
        (orjson.dumps(request(n=2)), "n"),
        (orjson.dumps(request(logprobs=True)), "logprobs"),
        (orjson.dumps(request(functions=[{"name": "f"}])), "functions"),
        (orjson.dumps(request({"role": "assistant", "content": "So"})), "prefill"),
        (orjson.dumps(request(tool_choice="any")), "tool_choice"),
        (
            orjson.dumps(request(tool_choice={"type": "function", "function": {"name": "zz"}})),
            "tool_choice",
        ),
        (b'{"messages":[3],"tools":[1]}', "malformed"),
        (orjson.dumps({**request(), "messages": [3]}), "malformed"),
        (orjson.dumps({**request(), "tools": [{"type": "tool_search"}]}), "native"),
    ],
)
async def test_what_is_not_for_us_passes_as_it_came(body: bytes, reason: str) -> None:
    """The client's bytes go up, the upstream's bytes and status come down."""
    theatre = stage(Prepared(422, [*JSON_TYPE, (b"x-request-id", b"up")], b'{ "error": 1 }'))
    reply = await theatre.chat(body)
    assert theatre.transport.sent[0].body == body, reason
    assert reply.status == 422
    assert await read(reply) == b'{ "error": 1 }'
    assert _header(reply, b"x-request-id") == b"up"
    assert theatre.ledger.rows[0].outcome == "http_422"


async def test_the_gateways_own_options_do_not_go_up() -> None:
    """The `usher` object is cut out of an otherwise untouched body."""
    theatre = stage(completion("hi"))
    await theatre.chat(b'{"model":"m", "usher":{"defer":"off"},"messages":[]}')
    assert theatre.transport.sent[0].body == b'{"model":"m","messages":[]}'


@pytest.mark.parametrize("end", [b"", b"data: [DONE]\n\n"])
async def test_a_stream_that_just_stops_is_an_error(end: bytes) -> None:
    """SDKs would take it for a whole answer; one with any kind of end passes as it is."""
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"Half"},"finish_reason":null}]}\n\n'
    theatre = stage(Prepared(200, SSE_TYPE, chunk + end))
    reply = await theatre.chat({"model": "m", "messages": [], "stream": True})
    if end:
        assert await read(reply) == chunk + end
        return
    with pytest.raises(StreamTruncated):
        await read(reply)
    assert theatre.ledger.turns[0].outcome == "stream_truncated"


async def test_a_finished_stream_without_done_passes() -> None:
    """A finish reason is an end; bytes that nobody asked us to change stay."""
    chunk = b'data: {"choices":[{"index":0,"delta":{},"finish_reason": "stop"}]}\n\n'
    reply = await stage(Prepared(200, SSE_TYPE, chunk)).chat({"model": "m", "stream": True})
    assert await read(reply) == chunk
