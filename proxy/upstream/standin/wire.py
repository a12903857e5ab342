"""An assistant message goes in; OpenAI's JSON or its stream of chunks comes out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import orjson
import xxhash

from proxy.stream.sse import DONE, encode
from proxy.upstream.standin.model import Said
from proxy.wire import JSON, JSONObject

CREATED: Final = 1_767_225_600
"""A fixed moment, so that the same request always gets the same bytes."""
FINGERPRINT: Final = "fp_standin"
ARGUMENT_CHARS: Final = 12
"""Arguments are streamed in pieces of this size, as models do."""
_PIECE = re.compile(r"\s*\S{1,40}\s*")


@dataclass(frozen=True, slots=True)
class Reply:
    """A message and what is said around it."""

    seed: bytes
    model: str
    message: JSONObject
    finish: str
    usage: JSONObject
    choices: int = 1
    ask_usage: bool = False


def message_of(said: Said, seed: bytes) -> JSONObject:
    """The assistant message; ids of calls follow from the request, so they never repeat."""
    message: JSONObject = {"role": "assistant", "content": said.text, "refusal": None}
    calls = [
        {
            "id": f"call_{xxhash.xxh3_128_hexdigest(seed, position + 1)[:24]}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for position, call in enumerate(said.calls)
    ]
    return {**message, "tool_calls": calls} if calls else message


def render_completion(reply: Reply) -> bytes:
    """The whole answer as one JSON body."""
    choices = [
        {"index": index, "message": reply.message, "logprobs": None, "finish_reason": reply.finish}
        for index in range(reply.choices)
    ]
    head = _head(reply, "chat.completion")
    return orjson.dumps({**head, "choices": choices, "usage": reply.usage})


def render_stream(reply: Reply) -> Iterator[bytes]:
    """The answer as server-sent events: role, text, calls in pieces, finish, usage if asked."""
    head = _head(reply, "chat.completion.chunk")
    extra = {"usage": None} if reply.ask_usage else {}
    for index in range(reply.choices):
        for delta, finish in (*((d, None) for d in _deltas(reply.message)), ({}, reply.finish)):
            choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
            yield encode(orjson.dumps({**head, "choices": [choice], **extra}))
    if reply.ask_usage:
        yield encode(orjson.dumps({**head, "choices": [], "usage": reply.usage}))
    yield DONE


def _head(reply: Reply, kind: str) -> JSONObject:
    return {
        "id": f"chatcmpl-{xxhash.xxh3_64_hexdigest(reply.seed)}",
        "object": kind,
        "created": CREATED,
        "model": reply.model,
        "service_tier": "default",
        "system_fingerprint": FINGERPRINT,
    }


def _deltas(message: JSONObject) -> Iterator[JSONObject]:
    content = message.get("content")
    yield {"role": "assistant", "content": "" if content else None, "refusal": None}
    for key, value in message.items():
        if key not in {"role", "content", "refusal", "tool_calls"}:
            yield {key: value}
    for key in ("content", "refusal"):
        yield from ({key: piece} for piece in _pieces(message.get(key)))
    for index, call in enumerate(message.get("tool_calls") or ()):
        yield from ({"tool_calls": [part]} for part in _call_parts(call, index))


def _pieces(text: JSON) -> Iterator[str]:
    if isinstance(text, str) and text:
        yield from _PIECE.findall(text) if text.strip() else (text,)


def _call_parts(call: JSONObject, index: int) -> Iterator[JSONObject]:
    """The first fragment names the call, the others only add to its arguments."""
    function = call["function"]
    yield {**call, "index": index, "function": {**function, "arguments": ""}}
    arguments = function["arguments"]
    for start in range(0, len(arguments), ARGUMENT_CHARS):
        piece = arguments[start : start + ARGUMENT_CHARS]
        yield {"index": index, "function": {"arguments": piece}}
