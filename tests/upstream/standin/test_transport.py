"""The stand-in behind the transport's seam."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing

import orjson
import pytest

from proxy.errors import ConnectFailed, StreamTruncated, UpstreamTimeout
from proxy.upstream.standin import Script, StandinTransport, Step
from proxy.upstream.transport import Transport, UpstreamRequest, UpstreamResponse
from proxy.wire import JSON, JSONObject

pytestmark = pytest.mark.anyio

ASK: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
STREAM: JSONObject = {**ASK, "stream": True}


async def _post(
    transport: Transport, body: JSON, path: str = "/v1/chat/completions", method: str = "POST"
) -> UpstreamResponse:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    return await transport.send(UpstreamRequest(method, f"http://standin{path}", [], raw, 1, 0.05))


async def _json(response: UpstreamResponse) -> JSON:
    return json.loads(await response.read())


async def test_it_answers_a_chat_request() -> None:
    """Without any configuration, with usage."""
    body = await _json(await _post(StandinTransport(), ASK))
    assert body["choices"][0]["message"]["content"] == "You said: hello"
    assert body["usage"]["prompt_tokens"] > 0


async def test_it_streams_when_asked_to() -> None:
    """As events, one per chunk of the body."""
    response = await _post(StandinTransport(), STREAM)
    chunks = [chunk async for chunk in response.chunks()]
    assert dict(response.headers)[b"content-type"].startswith(b"text/event-stream")
    assert chunks[-1] == b"data: [DONE]\n\n"
    assert all(chunk.startswith(b"data: ") for chunk in chunks)


async def test_it_lists_models_and_has_every_model() -> None:
    """So that any client is content."""
    listed = await _json(await _post(StandinTransport(), b"", "/v1/models", "GET"))
    single = await _json(await _post(StandinTransport(), b"", "/v1/models/gpt-x", "GET"))
    assert [model["object"] for model in listed["data"]] == ["model"]
    assert single["id"] == "gpt-x"


async def test_it_embeds() -> None:
    """On the embeddings path."""
    body = await _json(await _post(StandinTransport(), {"input": "a"}, "/v1/embeddings"))
    assert len(body["data"]) == 1


@pytest.mark.parametrize(
    ("body", "path", "status", "code"),
    [
        (b"{", "/v1/chat/completions", 400, None),
        ({**ASK, "messages": []}, "/v1/chat/completions", 400, "empty_array"),
        (ASK, "/v1/nothing", 404, "unknown_url"),
    ],
)
async def test_it_refuses_as_openai_does(body: JSON, path: str, status: int, code: str) -> None:
    """Status and error object."""
    response = await _post(StandinTransport(), body, path)
    assert (response.status, (await _json(response))["error"]["code"]) == (status, code)


async def test_it_can_insist_on_a_number_of_tools() -> None:
    """OpenAI stops at 128."""
    tool = {"type": "function", "function": {"name": "a"}}
    response = await _post(StandinTransport(max_tools=1), {**ASK, "tools": [tool, tool]})
    assert response.status == 400


async def test_a_body_may_come_in_pieces() -> None:
    """Large requests are streamed up."""

    async def pieces() -> AsyncIterator[bytes]:
        for byte in orjson.dumps(ASK):
            yield bytes([byte])

    url = "http://standin/v1/chat/completions"
    response = await StandinTransport().send(UpstreamRequest("POST", url, [], pieces(), 1, 1))
    assert response.status == 200


async def test_a_scripted_message_is_sent_as_json_or_as_a_stream() -> None:
    """Whichever the request wants."""
    message = {"role": "assistant", "content": "scripted words"}
    transport = StandinTransport(Script([Step(message=message, finish="length")] * 2))
    whole = await _json(await _post(transport, ASK))
    streamed = await (await _post(transport, STREAM)).read()
    assert whole["choices"][0]["message"]["content"] == "scripted words"
    assert whole["choices"][0]["finish_reason"] == "length"
    assert b'"finish_reason":"length"' in streamed


async def test_frames_bodies_and_headers_are_sent_as_scripted() -> None:
    """Byte for byte."""
    script = Script(
        [
            Step(frames=[b"data: 1\r\n", b"\r\n"]),
            Step(status=429, body={"error": {}}, headers=[(b"retry-after", b"3")]),
        ]
    )
    transport = StandinTransport(script)
    frames = await _post(transport, STREAM)
    limited = await _post(transport, ASK)
    assert [chunk async for chunk in frames.chunks()] == [b"data: 1\r\n", b"\r\n"]
    assert (limited.status, dict(limited.headers)[b"retry-after"]) == (429, b"3")
    assert await _json(limited) == {"error": {}}


async def test_a_connection_can_fail() -> None:
    """Before anything was accepted."""
    script = Script([Step(error=ConnectFailed("refused"))])
    with pytest.raises(ConnectFailed):
        await _post(StandinTransport(script), ASK)
    assert script.received[0].outcome == "failed"


@pytest.mark.parametrize(("end", "error"), [("cut", StreamTruncated), ("hang", UpstreamTimeout)])
async def test_a_stream_can_break_off_or_fall_silent(end: str, error: type[Exception]) -> None:
    """After the given number of chunks."""
    script = Script([Step(keep=2, end="cut" if end == "cut" else "hang")])
    response = await _post(StandinTransport(script), STREAM)
    chunks = aiter(response.chunks())
    assert [await anext(chunks) for _ in range(2)]
    with pytest.raises(error):
        await anext(chunks)
    assert script.received[0].outcome == "failed"


async def test_delays_are_kept() -> None:
    """Before the head, and before each chunk; timers may be a little early."""
    clock = asyncio.get_running_loop().time
    script = Script([Step(delay=0.02, gap=0.01, frames=[b"a", b"b"])])
    start = clock()
    response = await _post(StandinTransport(script), STREAM)
    head = clock() - start
    await response.read()
    assert head > 0.015
    assert clock() - start > 0.03


async def test_a_caller_who_hangs_up_is_noticed() -> None:
    """The outcome of the request says so."""
    script = Script([Step(gap=0.001)])
    response = await _post(StandinTransport(script), STREAM)
    async with aclosing(response.chunks()) as chunks:  # type: ignore[type-var]  # a generator
        await anext(aiter(chunks))
    await response.aclose()
    assert script.received[0].outcome == "closed"


async def test_a_finished_answer_is_noticed_too() -> None:
    """The usual outcome."""
    script = Script()
    await (await _post(StandinTransport(script), ASK)).read()
    assert script.received[0].outcome == "finished"
    await StandinTransport().aclose()
