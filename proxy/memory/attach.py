"""What became of a user's request comes in; the same as fields, comments and events of a reply out.

Three official SDKs read a named event as a broken chunk, so it is sent only to who asks for it. A
comment line, and a field on the finish chunk, harm nobody.
"""

import re
from collections.abc import Sequence

import orjson

from proxy.stream.sse import Frame, Splitter, encode
from proxy.wire import JSON, JSONObject

_FINISH = re.compile(rb'"finish_reason"\s*:\s*"[^"]')


def extend(reply: JSONObject, artifacts: Sequence[JSONObject]) -> JSONObject:
    """The reply, or the finish chunk, with the artifacts under `usher.memory`."""
    ours = reply.get("usher")
    return {**reply, "usher": {**(ours if isinstance(ours, dict) else {}), "memory": artifacts}}


def render_comments(artifacts: Sequence[JSONObject]) -> bytes:
    """One comment line per artifact."""
    return b"".join(b": usher-memory " + orjson.dumps(artifact) + b"\n\n" for artifact in artifacts)


def render_events(artifacts: Sequence[JSONObject], conversation: str | None) -> bytes:
    """LibreChat's `attachment` events."""
    return b"".join(
        b"event: attachment\ndata: " + orjson.dumps(attachment(one, conversation)) + b"\n\n"
        for one in artifacts
        if one["type"] != "pending"  # LibreChat knows no such kind
    )


def attachment(artifact: JSONObject, conversation: str | None) -> JSONObject:
    """An artifact in LibreChat's shape, whose errors are JSON within JSON."""
    memory: JSONObject = {"key": artifact["key"], "type": artifact["type"]}
    if artifact["type"] == "update":
        memory |= {"value": artifact["value"], "tokenCount": artifact["token_count"]}
    if artifact["type"] == "error":
        told = {
            "errorType": artifact["error_type"],
            "tokenCount": artifact["token_count"],
            "totalTokens": artifact["total_tokens"],
            "tokenLimit": artifact["token_limit"],
        }
        memory |= {"tokenCount": artifact["token_count"], "value": orjson.dumps(told).decode()}
    request_id = artifact.get("request_id")
    return {
        "type": "memory",
        "toolCallId": f"memory_{request_id}",
        "messageId": request_id,
        "conversationId": conversation,
        "memory": memory,
    }


class Tail:
    """A stream that is passed on untouched until it says that it ends; then it waits for us."""

    def __init__(self) -> None:
        self._splitter = Splitter()
        self._held: list[Frame] = []
        self._released = False

    @property
    def waits(self) -> bool:
        """Whether the finish has come, so that nothing more may go out before `release`."""
        return bool(self._held) and not self._released

    def feed(self, chunk: bytes) -> bytes:
        """What can go out now."""
        if self._released:
            return chunk
        out: list[bytes] = []
        for frame in self._splitter.feed(chunk):
            if self._held or _ends(frame.data):
                self._held.append(frame)
            else:
                out.append(frame.raw)
        return b"".join(out)

    def release(self, before: bytes, artifacts: Sequence[JSONObject]) -> bytes:
        """`before`, then what was held, with the artifacts on its first frame."""
        self._released = True
        frames = [*self._held, *self._splitter.finish()]
        self._held = []
        raw = [frame.raw for frame in frames]
        if frames and artifacts and _ends(frames[0].data):
            raw[0] = _extended(frames[0], artifacts)
        return before + b"".join(raw)


def _ends(data: bytes | None) -> bool:
    return data is not None and (data == b"[DONE]" or _FINISH.search(data) is not None)


def _extended(frame: Frame, artifacts: Sequence[JSONObject]) -> bytes:
    try:
        chunk: JSON = orjson.loads(frame.data or b"")
    except orjson.JSONDecodeError:
        return frame.raw
    if not isinstance(chunk, dict):
        return frame.raw
    return encode(orjson.dumps(extend(chunk, artifacts)))
