"""Public bug reports about the framing of event streams."""

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest

from proxy.errors import StreamTruncated
from proxy.plan.exchange import Reply
from proxy.upstream.transport import Prepared
from proxy.wire import JSONObject
from tests.bugbank.bank import (
    ON,
    both,
    frames_of,
    play,
    request_of,
    settings,
    stream,
    text_of,
)
from tests.edge.driver import Client, Rig
from tests.turns import SSE_TYPE, completion, read, stage

pytestmark = pytest.mark.anyio


@pytest.mark.item("stream/comments")
@both
async def test_bb063_data_that_is_no_json_does_not_crash(deferral: JSONObject) -> None:
    """A keep-alive in data.

    https://github.com/anomalyco/opencode/issues/50871
    """
    theatre = stage(stream(frames_of("bb063")), settings=settings(deferral))
    request = request_of("bb063", tools=request_of("bb001")["tools"])
    body = await read(await theatre.chat(request))
    kept = body.replace(b"data: : keepalive\n\n", b"")
    assert text_of(kept) == "hello"


async def test_bb065_intercepted_streams_have_no_empty_events() -> None:
    """openai-go dies of them.

    https://github.com/mckinsey/agents-at-scale-ark/pull/2519
    """
    theatre = stage(stream(frames_of("bb065")), settings=settings(ON))
    request = request_of("bb065", tools=request_of("bb001")["tools"])
    body = await read(await theatre.chat(request))
    assert text_of(body) == "hello"
    assert all(b"data:" in frame for frame in body.split(b"\n\n") if frame)


@pytest.mark.item("stream/cut-after-headers")
@both
async def test_bb066_a_stream_without_content_is_an_error(deferral: JSONObject) -> None:
    """Never an empty success.

    https://github.com/NousResearch/hermes-agent/issues/111887
    """
    theatre = stage(stream(frames_of("bb066")), settings=settings(deferral))
    request = request_of("bb066", tools=request_of("bb001")["tools"])
    with pytest.raises(StreamTruncated):
        await read(await theatre.chat(request))


@both
async def test_bb069_data_needs_no_space(deferral: JSONObject) -> None:
    """`data:{…}` is an event.

    https://github.com/envoyproxy/ai-gateway/pull/2177
    """
    theatre = stage(stream(frames_of("bb069")), settings=settings(deferral))
    request = request_of("bb069", tools=request_of("bb001")["tools"])
    body = (await read(await theatre.chat(request))).replace(b"data:{", b"data: {")
    assert text_of(body) == "hello"
    assert theatre.ledger.turns[0].outcome == "ok"


@both
@pytest.mark.parametrize("size", [1, 7, 64])
async def test_bb070_one_byte_at_a_time_is_the_same_stream(deferral: JSONObject, size: int) -> None:
    """Reads are not lines.

    https://github.com/higress-group/higress/issues/4616
    """
    whole, whole_stage = await play("bb001", deferral)
    pieces, pieces_stage = await play("bb001", deferral, size=size)
    assert pieces == whole
    usage = [row.prompt_tokens for row in pieces_stage.ledger.rows]
    assert usage == [row.prompt_tokens for row in whole_stage.ledger.rows]


@both
async def test_bb071_a_frame_ends_at_its_own_blank_line(deferral: JSONObject) -> None:
    """Half a frame stays half.

    https://github.com/BerriAI/litellm/issues/30224
    """

    async def halves() -> AsyncIterator[bytes]:
        yield b'data: {"choices":[{"index":0,"delta":{"content":"ab'
        await asyncio.sleep(0)
        yield b'c"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

    theatre = stage(Prepared(200, SSE_TYPE, halves()), settings=settings(deferral))
    request = request_of("bb071", tools=request_of("bb001")["tools"])
    assert text_of(await read(await theatre.chat(request))) == "abc"


@pytest.mark.item("stream/split-utf8")
@both
async def test_bb073_characters_are_not_cut(deferral: JSONObject) -> None:
    """Bytes equal.

    https://github.com/cnighswonger/claude-code-cache-fix/issues/365
    """
    body = (
        'data: {"choices":[{"index":0,"delta":{"content":"渐🌍"},"finish_reason":null}]}\n\n'
        'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    ).encode()
    theatre = stage(stream(body, 1), settings=settings(deferral))
    request = request_of("bb073", tools=request_of("bb001")["tools"])
    assert text_of(await read(await theatre.chat(request))) == "渐🌍"


@pytest.mark.parametrize("fields", [{}, {"stream": None}, {"stream": False}])
async def test_bb077_no_stream_means_json(fields: JSONObject) -> None:
    """Absent is false.

    https://github.com/open-webui/computer/issues/193
    """
    theatre = stage(completion("Hi"), settings=settings(ON))
    request = request_of("bb077", tools=request_of("bb001")["tools"], **fields)
    reply = await theatre.chat(request)
    assert isinstance(reply.body, bytes)
    assert orjson.loads(reply.body)["object"] == "chat.completion"


@pytest.mark.item("stream/keep-alive")
async def test_bb078_silence_is_filled_with_pings() -> None:
    """Also while a hidden round thinks.

    https://github.com/maximhq/bifrost/issues/5010
    """

    async def slow() -> AsyncIterator[bytes]:
        await asyncio.sleep(0.3)
        yield b'data: {"choices":[]}\n\n'

    async def chat(_: object) -> Reply:
        return Reply(200, list(SSE_TYPE), slow(), pings=True)

    rig = Rig(chat=chat, overrides={"server": {"ping_seconds": 0.05}})
    answered = await Client(b"{}").ask(rig.app, "POST", "/v1/chat/completions")
    assert answered.chunks[0] == b": ping\n"
