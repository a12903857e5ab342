"""What the tests of this folder share: settings, catalogues, and what a client makes of a reply."""

from dataclasses import dataclass
from typing import Any

import orjson

from proxy.settings import Settings
from proxy.stream.sse import Splitter
from proxy.upstream.rounds import DONE
from proxy.upstream.transport import Prepared
from proxy.wire import JSONObject
from tests.tools.samples import function
from tests.turns import SETTINGS, SSE_TYPE, Stage, read

USER: JSONObject = {"role": "user", "content": "hello"}


@dataclass(frozen=True, slots=True)
class Seen:
    """A reply as a client keeps it."""

    raw: bytes
    text: str
    calls: list[JSONObject]
    reason: str | None
    usage: JSONObject | None

    @property
    def names(self) -> list[str]:
        """The names of the called tools."""
        return [made["function"]["name"] for made in self.calls]

    @property
    def arguments(self) -> list[Any]:
        """The arguments of the calls, parsed."""
        return [orjson.loads(made["function"]["arguments"]) for made in self.calls]

    @property
    def message(self) -> JSONObject:
        """The message that the client puts into its history."""
        kept: JSONObject = {"role": "assistant", "content": self.text or None}
        return {**kept, "tool_calls": self.calls} if self.calls else kept


async def see(theatre: Stage, body: bytes | JSONObject, **more: object) -> Seen:
    """Asks, and reads the reply whatever its form."""
    raw = await read(await theatre.chat(body, **more))
    if not raw.startswith(b"{"):
        return _merge(raw, events_of(raw))
    reply = orjson.loads(raw)
    choice = reply["choices"][0]
    message = choice["message"]
    return Seen(
        raw,
        message.get("content") or "",
        message.get("tool_calls") or [],
        choice.get("finish_reason"),
        reply.get("usage"),
    )


def events_of(raw: bytes) -> list[JSONObject]:
    """The events of a stream, as a parser that knows the whole standard reads them."""
    datas = [frame.data for frame in Splitter().feed(raw) if frame.data is not None]
    return [orjson.loads(data) for data in datas if data != DONE]


def _merge(raw: bytes, chunks: list[JSONObject]) -> Seen:
    text, calls, reasons = "", dict[int, JSONObject](), []
    for choice in (choice for chunk in chunks for choice in chunk.get("choices", [])):
        text += choice["delta"].get("content") or ""
        reasons += [choice["finish_reason"]] if choice.get("finish_reason") else []
        for piece in choice["delta"].get("tool_calls") or []:
            _grow(calls, piece)
    assert len(reasons) <= 1
    assert list(calls) == list(range(len(calls)))
    usages = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
    return Seen(
        raw, text, list(calls.values()), next(iter(reasons), None), next(iter(usages), None)
    )


def _grow(calls: dict[int, JSONObject], piece: JSONObject) -> None:
    empty: JSONObject = {"type": "function", "function": {"name": "", "arguments": ""}}
    made = calls.setdefault(piece["index"], {"id": piece.get("id"), **empty})
    function = piece.get("function") or {}
    made["function"]["name"] += function.get("name") or ""
    made["function"]["arguments"] += function.get("arguments") or ""


def settings(**deferral: object) -> Settings:
    """Everything is deferred, nothing predicted."""
    return _settings("off", deferral)


def predicting(**deferral: object) -> Settings:
    """Everything is deferred, and predicted by the lexical ranker."""
    return _settings("on", deferral)


def _settings(prediction: str, deferral: dict[str, object]) -> Settings:
    tree: dict[str, Any] = SETTINGS.model_dump()
    tree["deferral"] = {"min_tools": 1, "small_chars": 0, **deferral}
    tree["prediction"] = {"mode": prediction, "ranker": "lexical"}
    return Settings.model_validate(tree)


def play(*deltas: JSONObject, reason: str | None = "tool_calls", **chunk: object) -> Prepared:
    """An event stream of those deltas and a finish; `chunk` are more fields of each event."""
    choices: list[JSONObject] = [
        {"index": 0, "delta": delta, "finish_reason": None} for delta in deltas
    ]
    if reason is not None:
        choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    chunks: list[JSONObject] = [{"id": "x", "choices": [choice], **chunk} for choice in choices]
    return stream(*chunks)


def stream(*chunks: JSONObject, end: bytes = b"data: [DONE]\n\n") -> Prepared:
    """An event stream of those chunks."""
    frames = (b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks)
    return Prepared(200, SSE_TYPE, b"".join(frames) + end)


def names(body: JSONObject) -> list[str]:
    """The names of the function tools in an upstream body."""
    return [tool["function"]["name"] for tool in body.get("tools", [])]


def listing(body: JSONObject) -> str:
    """The description of the search tool, which lists what is deferred."""
    found: str = next(
        tool["function"]["description"]
        for tool in body["tools"]
        if tool["function"]["name"] in ("tool_search", "find_tools")
    )
    return found


def result(call_id: str = "c1", content: str = "done") -> JSONObject:
    """A tool's result."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def user(text: object) -> JSONObject:
    """A user's message."""
    return {"role": "user", "content": text}


def many(count: int) -> list[JSONObject]:
    """Tools of twenty servers."""
    text: JSONObject = {"type": "string"}
    return [
        function(f"server{number % 20}__act{number}", f"Does thing {number}.", q=text)
        for number in range(count)
    ]
