"""Either shape of a chat reply, an event stream or one object, is read as the one that was due."""

from collections.abc import AsyncIterator

import orjson

from proxy.errors import StreamTruncated
from proxy.stream.collect import Collector, read_completion
from proxy.stream.sse import DONE, Splitter, encode
from proxy.upstream.transport import UpstreamResponse
from proxy.wire import JSON, Headers, JSONObject

JSON_TYPE = b"application/json"
_EVENT_STREAM = b"text/event-stream"


def is_events(headers: Headers) -> bool:
    """Whether these headers announce an event stream."""
    return _type_of(headers).startswith(_EVENT_STREAM)


def outcome_of_reply(status: int) -> str:
    """The ledger's word for a reply that was no chat completion."""
    return "no_completion" if status == 200 else f"http_{status}"


def with_type(headers: Headers, type_: bytes) -> Headers:
    """The headers with another content type."""
    kept = [(name, value) for name, value in headers if name.lower() != b"content-type"]
    return [*kept, (b"content-type", type_)]


def flatten(body: bytes) -> JSONObject:
    """The chat completion that a whole event stream says, or its error object.

    Raises StreamTruncated when the stream ends before its answer does.
    """
    splitter, collector = Splitter(), Collector()
    for frame in [*splitter.feed(body), *splitter.finish()]:
        if frame.data == b"[DONE]":
            collector.done = True
        elif frame.data:
            collector.add(_read(frame.data))
    answer = collector.answer()
    if answer.error is not None:
        return {"error": answer.error}
    if not answer.complete:
        raise StreamTruncated("the upstream's stream ended before its answer did")
    choice = {"index": 0, "message": answer.message, "finish_reason": answer.finish_reason}
    reply: JSONObject = {**answer.head, "object": "chat.completion", "choices": [choice]}
    return reply if answer.usage is None else reply | {"usage": answer.usage}


def stream_of(response: UpstreamResponse) -> AsyncIterator[bytes]:
    """The reply's bytes as an event stream, also where the upstream did not stream.

    Raises as `UpstreamResponse.chunks` does.
    """
    if _type_of(response.headers).startswith(JSON_TYPE):
        return _streamed(response)
    return response.chunks()


async def _streamed(response: UpstreamResponse) -> AsyncIterator[bytes]:
    reply = _read(await response.read())
    if isinstance(reply, dict) and reply.get("choices"):
        yield b"".join(encode(orjson.dumps(chunk)) for chunk in _chunks_of(reply)) + DONE
    elif reply is not None:
        yield encode(orjson.dumps(reply))


def _chunks_of(reply: JSONObject) -> list[JSONObject]:
    answer = read_completion(reply)
    delta = dict(answer.message)
    if answer.calls:
        delta["tool_calls"] = [{**call.raw, "index": call.index} for call in answer.calls]
    head: JSONObject = {**answer.head, "object": "chat.completion.chunk"}
    said = {"index": 0, "delta": delta, "finish_reason": None}
    ended = {"index": 0, "delta": {}, "finish_reason": answer.finish_reason or "stop"}
    chunks = [{**head, "choices": [said]}, {**head, "choices": [ended]}]
    return [*chunks, {**head, "choices": [], "usage": answer.usage}] if answer.usage else chunks


def _type_of(headers: Headers) -> bytes:
    types = (value for name, value in headers if name.lower() == b"content-type")
    return next(types, b"").lower()


def _read(data: bytes) -> JSON:
    try:
        value: JSON = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return value
