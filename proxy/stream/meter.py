"""Bytes of a reply that is passed on untouched come in; the usage it states goes out."""

import re

import msgspec

from proxy.stream.sse import Splitter
from proxy.wire import JSON, JSONObject

TAIL = 64 * 1024
"""Bytes kept of an event stream: its usage stands in one of the last events."""
MAX_JSON = 32 * 1024 * 1024
_EVENT_STREAM = b"text/event-stream"
FEW = 4096
"""Bytes of a stream's end that are read for the model's name when it tells no usage."""
_USAGE = b'"usage"'
_FINISH = re.compile(rb'"finish_reason"\s*:\s*"[^"]')


class _Facts(msgspec.Struct, gc=False):
    """What is read of a reply; everything else in it is skipped."""

    model: JSON = None
    usage: JSON = None
    response: JSON = None


_DECODE = msgspec.json.Decoder(_Facts).decode
_NOTHING = _Facts()


class Meter:
    """Watches a reply go by: a copy of a stream's tail, or of a JSON body that is not too large."""

    __slots__ = ("_bytes", "_kept", "_limit", "stream")

    def __init__(self, content_type: bytes) -> None:
        self.stream = content_type.startswith(_EVENT_STREAM)
        readable = self.stream or b"json" in content_type
        self._limit = (TAIL if self.stream else MAX_JSON) if readable else 0
        self._kept: list[bytes] = []
        self._bytes = 0

    def feed(self, chunk: bytes) -> None:
        """Notes a chunk; costs an append."""
        if not self._limit:
            return
        self._kept.append(chunk)
        self._bytes += len(chunk)
        while self.stream and self._bytes - len(self._kept[0]) > self._limit:
            self._bytes -= len(self._kept.pop(0))
        if self._bytes > self._limit and not self.stream:
            self._limit = 0
            self._kept.clear()

    @property
    def cut(self) -> bool:
        """Whether a chat stream has gone by without an end: no finish reason and no `[DONE]`."""
        if not self.stream or (self._kept and b"[DONE]" in self._kept[-1]):
            return False
        tail = b"".join(self._kept)
        return b"[DONE]" not in tail and _FINISH.search(tail) is None and b'"error"' not in tail

    def read(self) -> tuple[JSONObject | None, str | None]:
        """The usage object and the model name, as far as the reply states them."""
        body = b"".join(self._kept)
        if not body:
            return None, None
        if not self.stream:
            return _facts([body])
        found = _read_events(_last_events(body))
        return found if found[0] is not None or body.count(_USAGE) < 2 else _read_events(body)


def _last_events(body: bytes) -> bytes:
    """The events from the last one that speaks of usage on, or a few when none does."""
    at = body.rfind(_USAGE)
    start = body.rfind(b"\n\n", 0, at if at >= 0 else max(0, len(body) - FEW))
    return body if start < 0 else body[start + 2 :]


def _read_events(body: bytes) -> tuple[JSONObject | None, str | None]:
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
        inner = reply.response
        usage, name = reply.usage, reply.model
        if isinstance(inner, dict):
            usage, name = inner.get("usage"), inner.get("model")
        model = model or (name if isinstance(name, str) else None)
        if isinstance(usage, dict):
            return usage, model
    return None, model


def _load(data: bytes) -> _Facts:
    try:
        return _DECODE(data)
    except (ValueError, RecursionError):
        return _NOTHING
