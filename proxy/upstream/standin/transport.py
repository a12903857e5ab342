"""Requests to an upstream go in; the stand-in model's replies come out, without a socket."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from urllib.parse import urlsplit

import orjson

from proxy.errors import StreamTruncated, UpstreamTimeout
from proxy.upstream.standin.embed import embed
from proxy.upstream.standin.meter import Meter
from proxy.upstream.standin.model import answer
from proxy.upstream.standin.refuse import UNPARSABLE, Refusal, refuse
from proxy.upstream.standin.script import Received, Script, Step
from proxy.upstream.standin.wire import (
    CREATED,
    Reply,
    message_of,
    render_completion,
    render_stream,
)
from proxy.upstream.transport import Prepared, UpstreamRequest, UpstreamResponse
from proxy.wire import JSON, Headers, JSONObject

MODEL = "standin"
_JSON, _EVENTS = b"application/json", b"text/event-stream; charset=utf-8"


class StandinTransport:
    """A deterministic OpenAI-compatible server inside this process.

    `max_tools` makes it refuse longer arrays, as OpenAI does from 128; `cache` makes it report
    cached tokens. Nothing is recorded unless a script asks for it.
    """

    def __init__(
        self, script: Script | None = None, *, max_tools: int | None = None, cache: bool = False
    ) -> None:
        self._script = script
        self._max_tools = max_tools
        self._meter = Meter(cache=cache)

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        """Answer like the network would, scripted failures included."""
        received = Received(
            request.method,
            urlsplit(request.url).path,
            request.headers,
            await _read_body(request),
        )
        step = self._script.next(received) if self._script else Step()
        await asyncio.sleep(step.delay)
        if step.error is not None:
            received.outcome = "failed"
            raise step.error
        status, headers, chunks = self._answer(received, step)
        body = _play(chunks, step, received, request.idle_seconds)
        return Prepared(status, [*headers, *step.headers], body)

    async def aclose(self) -> None:
        """Nothing to close."""

    def _answer(self, received: Received, step: Step) -> tuple[int, Headers, Iterable[bytes]]:
        if step.body is not None:
            return _json_reply(step.status, step.body)
        if step.frames is not None:
            return step.status, [(b"content-type", _EVENTS)], step.frames
        path = received.path.rstrip("/")
        if received.method == "GET" and "/models" in path:
            return _json_reply(200, _models(path))
        if received.method != "POST" or not path.endswith(("/chat/completions", "/embeddings")):
            return _refused(_unknown_url(received))
        try:
            body = orjson.loads(received.body)
        except orjson.JSONDecodeError:
            return _refused(UNPARSABLE)
        if path.endswith("/embeddings"):
            return _json_reply(200, embed(body))
        refusal = refuse(body, self._max_tools)
        return _refused(refusal) if refusal else self._complete(body, received.body, step)

    def _complete(
        self, body: JSONObject, seed: bytes, step: Step
    ) -> tuple[int, Headers, Iterable[bytes]]:
        message = step.message or message_of(answer(body), seed)
        options = body.get("stream_options") or {}
        reply = Reply(
            seed=seed,
            model=body["model"],
            message={"role": "assistant", "content": None, **message},
            finish=step.finish or ("tool_calls" if message.get("tool_calls") else "stop"),
            usage=step.usage or self._meter.measure(body, message),
            choices=body.get("n") or 1,
            ask_usage=options.get("include_usage") is True,
        )
        if body.get("stream"):
            return step.status, [(b"content-type", _EVENTS)], render_stream(reply)
        return step.status, [(b"content-type", _JSON)], [render_completion(reply)]


async def _read_body(request: UpstreamRequest) -> bytes:
    if request.body is None or isinstance(request.body, bytes):
        return request.body or b""
    return b"".join([chunk async for chunk in request.body])


async def _play(
    chunks: Iterable[bytes], step: Step, received: Received, idle_seconds: float
) -> AsyncIterator[bytes]:
    """Send the chunks, then end the way the step says; notes how it went."""
    try:
        for position, chunk in enumerate(chunks):
            if position == step.keep:
                break
            await asyncio.sleep(step.gap)
            yield chunk
        await _end(step, idle_seconds)
    except (StreamTruncated, UpstreamTimeout):
        received.outcome = "failed"
        raise
    except (GeneratorExit, asyncio.CancelledError):
        received.outcome = "closed"
        raise
    received.outcome = "finished"


async def _end(step: Step, idle_seconds: float) -> None:
    if step.end == "cut":
        raise StreamTruncated("the upstream closed the connection before its answer ended")
    if step.end == "hang":
        await asyncio.sleep(idle_seconds)
        raise UpstreamTimeout("the upstream sent nothing for longer than the idle timeout")


def _json_reply(status: int, body: JSON) -> tuple[int, Headers, Iterable[bytes]]:
    return status, [(b"content-type", _JSON)], [orjson.dumps(body)]


def _refused(refusal: Refusal) -> tuple[int, Headers, Iterable[bytes]]:
    return _json_reply(refusal.status, refusal.body())


def _unknown_url(received: Received) -> Refusal:
    text = f"Invalid URL ({received.method} {received.path})"
    return Refusal(text, code="unknown_url", status=404)


def _models(path: str) -> JSONObject:
    """The list, or one model: this one answers to every name."""
    name = path.rpartition("/models")[2].strip("/")
    model = {"id": name or MODEL, "object": "model", "created": CREATED, "owned_by": "usher"}
    return model if name else {"object": "list", "data": [model]}
