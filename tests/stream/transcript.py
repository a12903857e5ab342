"""Writes what providers send, and reads a client stream the way an SDK does."""

import json
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from proxy.stream.splice import Splicer
from proxy.stream.sse import DONE, Splitter
from proxy.wire import JSON, JSONObject

TOP: JSONObject = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
}
SECOND: JSONObject = TOP | {"id": "chatcmpl-2", "created": 2}
END = DONE


def event(value: JSON) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def chunk(delta: JSON, finish: str | None = None, top: JSONObject = TOP, **more: JSON) -> bytes:
    """A chunk with one choice; `more` are further fields at its top."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event(top | {"choices": [choice]} | more)


def say(text: str, top: JSONObject = TOP) -> bytes:
    return chunk({"content": text}, top=top)


def opening(index: int, id_: str, name: str, arguments: str = "") -> JSONObject:
    """The first fragment of a call."""
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": id_, "type": "function", "function": function}


def piece(index: int, arguments: str) -> JSONObject:
    """A further fragment of a call."""
    return {"index": index, "function": {"arguments": arguments}}


def calls(*fragments: JSON, top: JSONObject = TOP) -> bytes:
    return chunk({"tool_calls": list(fragments)}, top=top)


def play(splicer: Splicer, *wire: bytes) -> bytes:
    """What the client gets for these bytes of the upstream."""
    splitter = Splitter()
    frames = [frame for part in wire for frame in splitter.feed(part)]
    return b"".join([splicer.feed(frame) for frame in [*frames, *splitter.finish()]])


def play_rounds(splicer: Splicer, rounds: Iterable[bytes], visible: Container[str] = ()) -> bytes:
    """What the client gets for whole rounds, the end left open."""
    out = b""
    for wire in rounds:
        splicer.start_round(visible)
        out += play(splicer, wire)
    return out


@dataclass
class Seen:
    """A client's view of a stream, put together as the SDKs do it: by index, by appending."""

    chunks: list[JSONObject] = field(default_factory=list)
    text: str = ""
    reasoning: str = ""
    roles: list[str] = field(default_factory=list)
    finishes: list[str] = field(default_factory=list)
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    usages: list[JSONObject] = field(default_factory=list)
    errors: list[JSON] = field(default_factory=list)
    dones: int = 0

    def heads(self, name: str) -> set[JSON]:
        return {chunk.get(name) for chunk in self.chunks if "error" not in chunk}


def see(wire: bytes) -> Seen:
    """Read a client stream strictly: every event is one `data:` line, nothing follows the end."""
    seen = Seen()
    wire = wire.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for block in wire.decode().split("\n\n")[:-1]:
        assert block.startswith("data: "), block
        assert "\n" not in block, block
        assert not seen.dones, "something follows [DONE]"
        if block == "data: [DONE]":
            seen.dones += 1
        else:
            _take(seen, json.loads(block[6:]))
    assert not wire or wire.endswith(b"\n\n")
    return seen


def _take(seen: Seen, chunk: JSONObject) -> None:
    seen.chunks.append(chunk)
    if "error" in chunk:
        seen.errors.append(chunk["error"])
    if chunk.get("usage"):
        seen.usages.append(chunk["usage"])
    for choice in chunk.get("choices") or ():
        delta = choice["delta"]
        seen.text += delta.get("content") or ""
        seen.reasoning += delta.get("reasoning_content") or ""
        seen.roles += [delta["role"]] if delta.get("role") else []
        seen.finishes += [choice["finish_reason"]] if choice.get("finish_reason") else []
        for fragment in delta.get("tool_calls") or ():
            _append(seen, fragment)


def _append(seen: Seen, fragment: JSONObject) -> None:
    index, function = fragment["index"], fragment.get("function") or {}
    if index == len(seen.calls):
        seen.calls.append(("", "", ""))
    parts = fragment.get("id"), function.get("name"), function.get("arguments")
    id_, name, arguments = (
        old + (new or "") for old, new in zip(seen.calls[index], parts, strict=True)
    )
    seen.calls[index] = (id_, name, arguments)


ROLE = chunk({"role": "assistant", "content": ""})
STOP = chunk({}, "stop")
CALLED = chunk({}, "tool_calls")
USAGE: JSONObject = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
SEARCH = calls(opening(0, "s", "tool_search")) + calls(piece(0, '{"queries":["x"]}'))
REAL = calls(opening(0, "a", "t0")) + calls(piece(0, '{"q":')) + calls(piece(0, "1}"))
VISIBLE = {"t0", "t1"}
"""The client's tools; `tool_search` is hidden."""


def run(
    *rounds: bytes, usage: JSONObject | None = None, asked: bool = False, hold: bool = False
) -> Seen:
    """The client's view of these rounds, the last of which is the visible one."""
    splicer = Splicer(include_usage=asked, hold_text=hold)
    wire = play_rounds(splicer, rounds, VISIBLE)
    seen = see(wire + splicer.finish(usage))
    assert seen.text == splicer.text
    assert b"tool_search" not in wire
    return seen


def splicer_in_round(*, asked: bool = False, hold: bool = False) -> Splicer:
    splicer = Splicer(include_usage=asked, hold_text=hold)
    splicer.start_round(VISIBLE)
    return splicer
