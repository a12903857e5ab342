"""Bytes of a reply that is passed on untouched come in; the usage it states goes out."""

import re

import orjson

from proxy.stream.sse import Splitter
from proxy.wire import JSONObject

TAIL = 64 * 1024
"""Bytes kept of an event stream: its usage stands in one of the last events."""
MAX_JSON = 32 * 1024 * 1024
_EVENT_STREAM = b"text/event-stream"
_FINISH = re.compile(rb'"finish_reason"\s*:\s*"[^"]')


class Meter:
    """Watches a reply go by: a copy of a stream's tail, or of a JSON body that is not too large."""

    __slots__ = ("_bytes", "_kept", "_limit", "_stream")

    def __init__(self, content_type: bytes) -> None:
        self._stream = content_type.startswith(_EVENT_STREAM)
        readable = self._stream or b"json" in content_type
        self._limit = (TAIL if self._stream else MAX_JSON) if readable else 0
        self._kept: list[bytes] = []
        self._bytes = 0

    def feed(self, chunk: bytes) -> None:
        """Notes a chunk; costs an append."""
        if not self._limit:
            return
        self._kept.append(chunk)
        self._bytes += len(chunk)
        while self._stream and self._bytes - len(self._kept[0]) > self._limit:
            self._bytes -= len(self._kept.pop(0))
        if self._bytes > self._limit and not self._stream:
            self._limit = 0
            self._kept.clear()

    @property
    def cut(self) -> bool:
        """Whether a chat stream has gone by without an end: no finish reason and no `[DONE]`."""
        if not self._stream:
            return False
        tail = b"".join(self._kept)
        return b"[DONE]" not in tail and _FINISH.search(tail) is None and b'"error"' not in tail

    def read(self) -> tuple[JSONObject | None, str | None]:
        """The usage object and the model name, as far as the reply states them."""
        body = b"".join(self._kept)
        if not body:
            return None, None
        if not self._stream:
            return _facts([body])
        splitter = Splitter()
        frames = [*splitter.feed(body), *splitter.finish()]
        return _facts([frame.data for frame in reversed(frames) if frame.data])


def _facts(candidates: list[bytes]) -> tuple[JSONObject | None, str | None]:
    """The first usage object found and the model named beside it or later.

    Responses API events nest both under `response`.
    """
    model: str | None = None
    for data in candidates:
        reply = _load(data)
        inner = reply.get("response")
        source = inner if isinstance(inner, dict) else reply
        name = source.get("model")
        model = model or (name if isinstance(name, str) else None)
        usage = source.get("usage")
        if isinstance(usage, dict):
            return usage, model
    return None, model


def _load(data: bytes) -> JSONObject:
    try:
        reply = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    return reply if isinstance(reply, dict) else {}
