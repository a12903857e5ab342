"""The finish and the usage chunk of a round come in; they go out when the turn is really over."""

from proxy.stream.chunk import dump
from proxy.stream.sse import encode
from proxy.wire import JSON, JSONObject


class Ending:
    """Keeps the end of one round back; both chunks go out as they came if they still hold."""

    def __init__(self) -> None:
        self._chunk: JSONObject | None = None
        self._choice: JSONObject = {}
        self._wire: bytes | None = None
        self._usage: JSONObject | None = None
        self._usage_wire = b""

    def keep_finish(self, chunk: JSONObject, choice: JSONObject, wire: bytes | None) -> None:
        """Only the first one counts. `wire` is the event if it says nothing but the finish."""
        if self._chunk is None:
            self._chunk, self._choice, self._wire = chunk, choice, wire

    def keep_usage(self, usage: JSONObject, wire: bytes) -> None:
        self._usage, self._usage_wire = usage, wire

    def render_finish(self, calls: bool | None, extra: JSONObject | None) -> bytes:
        """The finish event, with `extra` fields; `calls`: the client saw some, None to trust."""
        if self._chunk is None:
            return b""
        said = self._choice["finish_reason"]
        reason = fit_reason(said, calls)
        if self._wire is not None and reason == said and not extra:
            return self._wire
        choice = {key: value for key, value in self._choice.items() if key != "message"}
        choice |= {"delta": {}, "finish_reason": reason}
        if "logprobs" in choice:
            choice["logprobs"] = None  # they went out with the words, or spell a hidden call
        return encode(dump(self._chunk | {"choices": [choice]} | (extra or {})))

    def render_usage(self, usage: JSONObject, head: JSONObject) -> bytes:
        """The usage event; `head` begins it when the round's own one tells another usage."""
        if self._usage == usage:
            return self._usage_wire
        return encode(dump(head | {"choices": [], "usage": usage}))


def fit_reason(reason: JSON, calls: bool | None) -> JSON:
    """The reason that fits what the client saw; some servers say `function_call` of tool calls."""
    if calls is None or reason not in ("stop", "tool_calls", "function_call"):
        return reason
    return "tool_calls" if calls else "stop"
