"""Litellm behind the Transport seam, with a loopback OpenAI server behind litellm."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import orjson
import pytest

from proxy.errors import UpstreamTimeout
from proxy.upstream.litellm_adapter import LitellmTransport
from proxy.upstream.transport import UpstreamRequest
from proxy.wire import JSONObject
from tests.fakes.scripted import (
    HANG,
    ScriptedUpstream,
    Step,
    chunk,
    json_reply,
    sse_reply,
    stream_head,
)

pytestmark = [
    pytest.mark.anyio,
    # Pydantic's advice to litellm:
    pytest.mark.filterwarnings("ignore:.* on TypedDict class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the .* on the instance:DeprecationWarning"),
]

MESSAGES = [{"role": "user", "content": "hi"}]
COMPLETION = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "m-answered",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "t1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"a":1}'},
                    }
                ],
            },
        }
    ],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}


@pytest.fixture
async def transport() -> AsyncIterator[LitellmTransport]:
    chosen = LitellmTransport()
    yield chosen
    await chosen.aclose()


def post(url: str = "http://litellm/v1", idle: float = 20.0, **body: object) -> UpstreamRequest:
    fields = {"model": "openai/m", "messages": MESSAGES} | body
    headers = [(b"authorization", b"Bearer sk-provider"), (b"content-type", b"application/json")]
    return UpstreamRequest(
        "POST", f"{url}/chat/completions", headers, orjson.dumps(fields), 5.0, idle
    )


def delta(finish: str | None = None, **fields: object) -> bytes:
    body = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m-answered",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }
    return b"data: " + orjson.dumps(body) + b"\n\n"


def parse(raw: bytes) -> list[JSONObject]:
    """The frames of a stream that ends as it should."""
    *frames, done, rest = raw.split(b"\n\n")
    assert (done, rest) == (b"data: [DONE]", b"")
    return [orjson.loads(frame.removeprefix(b"data: ")) for frame in frames]


def test_start_up_does_not_import_litellm() -> None:
    """Making the transport costs nothing; litellm comes with the first request."""
    code = "import sys, proxy.upstream.litellm_adapter as a; a.LitellmTransport(); "
    code += "sys.exit('litellm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_reply_is_a_chat_completion(transport: LitellmTransport) -> None:
    """A vendor's reply comes back as OpenAI JSON with the keys that clients require."""
    async with ScriptedUpstream([json_reply(orjson.dumps(COMPLETION))]) as upstream:
        response = await transport.send(post(upstream.url + "/v1", temperature=0, top_p=None))
        body = orjson.loads(await response.read())
    assert response.status == 200
    message = body["choices"][0]["message"]
    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a":1}'}
    assert message["refusal"] is None
    assert body["choices"][0]["finish_reason"] == "tool_calls"
    assert body["usage"]["total_tokens"] == 10
    [got] = upstream.requests
    sent = orjson.loads(got.body)
    assert (got.target, got.header("authorization")) == (
        "/v1/chat/completions",
        "Bearer sk-provider",
    )
    assert (sent["model"], sent["messages"], sent["temperature"]) == ("m", MESSAGES, 0)
    assert "top_p" not in sent


async def test_stream_is_event_frames(transport: LitellmTransport) -> None:
    """A streamed reply is OpenAI's frames: one id and model, one finish reason, usage, [DONE]."""
    usage = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m-answered"}
    usage |= {"choices": [], "usage": COMPLETION["usage"]}
    frames = [delta(role="assistant", content="he"), delta(content="llo"), delta("stop")]
    frames += [b"data: " + orjson.dumps(usage) + b"\n\n", b"data: [DONE]\n\n"]
    async with ScriptedUpstream(sse_reply(frames)) as upstream:
        options = {"include_usage": True}
        response = await transport.send(
            post(upstream.url + "/v1", stream=True, stream_options=options)
        )
        chunks = parse(await response.read())
    assert (b"content-type", b"text/event-stream; charset=utf-8") in response.headers
    choices = [choice for data in chunks for choice in data["choices"]]
    assert "".join(choice["delta"].get("content", "") for choice in choices) == "hello"
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["stop"]
    assert {data["model"] for data in chunks} == {chunks[0]["model"]}
    assert len({data["id"] for data in chunks}) == 1
    assert chunks[-1]["usage"]["total_tokens"] == 10


async def test_vendors_error_keeps_its_status(transport: LitellmTransport) -> None:
    """A vendor's refusal is OpenAI's error JSON with the real status and the hint when to retry."""
    refusal = json_reply(
        b'{"error": {"message": "slow down", "type": "rate", "param": null, "code": "r"}}',
        ("Retry-After", "7"),
        status=429,
    )
    async with ScriptedUpstream([refusal], [refusal]) as upstream:
        for stream in (False, True):
            response = await transport.send(post(upstream.url + "/v1", stream=stream))
            error = orjson.loads(await response.read())["error"]
            assert (response.status, set(error)) == (429, {"message", "type", "param", "code"})
            assert "slow down" in error["message"]
            assert (b"retry-after", b"7") in response.headers
    assert len(upstream.requests) == 2


async def test_error_inside_a_stream_is_a_frame(transport: LitellmTransport) -> None:
    """An error after the first byte arrives inside the stream, which then ends."""
    script: list[Step] = [
        stream_head(),
        chunk(delta(role="assistant", content="he")),
        chunk(b'data: {"error": {"message": "broke", "code": 500}}\n\n'),
        HANG,
    ]
    async with ScriptedUpstream(script) as upstream:
        response = await transport.send(post(upstream.url + "/v1", stream=True))
        chunks = parse(await response.read())
    assert chunks[0]["choices"][0]["delta"]["content"] == "he"
    assert "broke" in chunks[-1]["error"]["message"]


@pytest.mark.parametrize("started", [False, True])
async def test_closed_stream_disconnects_the_vendor(
    transport: LitellmTransport, started: bool
) -> None:
    """When the client goes, the vendor stops generating."""
    script: list[Step] = [stream_head(), chunk(delta(role="assistant", content="he")), HANG]
    async with ScriptedUpstream(script) as upstream:
        response = await transport.send(post(upstream.url + "/v1", stream=True))
        if started:
            await anext(response.chunks())
        await response.aclose()
        await asyncio.wait_for(upstream.requests[0].gone.wait(), 1)


@pytest.mark.parametrize("stream", [False, True])
async def test_silence_times_out(transport: LitellmTransport, stream: bool) -> None:
    """A vendor that says nothing is a timeout of ours."""
    async with ScriptedUpstream([HANG]) as upstream:
        with pytest.raises(UpstreamTimeout):
            await transport.send(post(upstream.url + "/v1", idle=0.3, stream=stream))


async def test_silence_inside_a_stream_times_out(transport: LitellmTransport) -> None:
    """A vendor that goes quiet inside its reply is a timeout of ours."""
    script: list[Step] = [stream_head(), chunk(delta(role="assistant", content="he")), HANG]
    async with ScriptedUpstream(script) as upstream:
        response = await transport.send(post(upstream.url + "/v1", idle=0.5, stream=True))
        with pytest.raises(UpstreamTimeout):
            await response.read()


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/embeddings"), ("GET", "/v1/models"), ("GET", "/v1/x")]
)
async def test_other_surfaces_are_refused(
    transport: LitellmTransport, method: str, path: str
) -> None:
    """Only chat goes through litellm; anything else says so."""
    url = f"http://litellm{path}"
    response = await transport.send(UpstreamRequest(method, url, [], None, 1.0, 1.0))
    error = orjson.loads(await response.read())["error"]
    assert (response.status, error["code"]) == (404, "unknown_url")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"{", None),
        (b"[]", None),
        (b"", None),
        (b'{"messages": []}', "model"),
        (b'{"model": "openai/m"}', "messages"),
        (b'{"model": "openai/m", "messages": [], "api_base": "http://evil"}', "api_base"),
        (b'{"model": "openai/m", "messages": [], "mock_response": "x"}', "mock_response"),
    ],
)
async def test_bad_bodies_are_refused(
    transport: LitellmTransport, body: bytes, param: str | None
) -> None:
    """What is no chat request, or would steer litellm itself, is a 400 that names the field."""
    request = UpstreamRequest("POST", "http://litellm/v1/chat/completions", [], body, 1.0, 1.0)
    response = await transport.send(request)
    error = orjson.loads(await response.read())["error"]
    assert (response.status, error["param"]) == (400, param)


async def test_key_of_any_surface_reaches_the_vendor(transport: LitellmTransport) -> None:
    """The configured key is used in whichever header it was put; a streamed body is read."""

    async def body() -> AsyncIterator[bytes]:
        yield orjson.dumps({"model": "openai/m", "messages": MESSAGES})

    answer = [json_reply(orjson.dumps(COMPLETION))]
    async with ScriptedUpstream(answer) as upstream:
        url = f"{upstream.url}/v1/chat/completions"
        headers = [(b"accept", b"*/*"), (b"api-key", b"k-azure")]
        request = UpstreamRequest("POST", url, headers, body(), 5.0, 20.0)
        assert (await transport.send(request)).status == 200
    assert upstream.requests[0].header("authorization") == "Bearer k-azure"


async def test_missing_key_is_the_vendors_refusal(transport: LitellmTransport) -> None:
    """Without any key the caller hears what litellm says, as an error of the right kind."""
    url = "http://litellm/v1/chat/completions"
    body = orjson.dumps({"model": "anthropic/m", "messages": MESSAGES})
    response = await transport.send(UpstreamRequest("POST", url, [], body, 1.0, 20.0))
    assert response.status == 401
    assert set(orjson.loads(await response.read())["error"]) == {"message", "type", "param", "code"}


async def test_unreachable_vendor_is_a_server_error(transport: LitellmTransport) -> None:
    """A vendor that nobody can reach is not the client's fault."""
    response = await transport.send(post("http://127.0.0.1:1/v1"))
    assert response.status >= 500
