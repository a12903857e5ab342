"""Desks of small turns, and answers for them to settle."""

from collections.abc import Sequence

import orjson

from proxy.plan.envelope import open_envelope
from proxy.settings import Deferral
from proxy.stream.collect import Answer, Call
from proxy.tools.arrange import Wishes, arrange
from proxy.tools.choice import read_choice
from proxy.tools.history import read_history
from proxy.upstream.brief import Brief
from proxy.upstream.desk import Desk
from proxy.wire import JSON, JSONObject
from tests.tools.samples import city_tools, toolbox

_USER: JSONObject = {"role": "user", "content": "hi"}


def make_desk(
    body: JSONObject | None = None,
    predicted: Sequence[str] = (),
    ids: Sequence[str] = (),
    **deferral: int,
) -> Desk:
    request: JSONObject = {"model": "m", "messages": [_USER], "tools": [], **(body or {})}
    envelope = open_envelope(orjson.dumps(request))
    assert envelope is not None
    box = toolbox(*city_tools())
    choice = read_choice(request.get("tool_choice"))
    settings = Deferral.model_validate(deferral)
    history = read_history(request["messages"])
    brief = Brief(
        envelope=envelope,
        toolbox=box,
        arrangement=arrange(box, history, Wishes(choice), lambda _: predicted, {}),
        choice=choice,
        settings=settings,
        messages=orjson.dumps(request["messages"]),
        ids=frozenset(ids),
        stream=bool(request.get("stream")),
        sequential=request.get("parallel_tool_calls") is False,
        ask_usage=True,
    )
    return Desk(brief)


def make_call(name: str, arguments: JSON = None, call_id: str = "c1") -> Call:
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()
    raw: JSONObject = {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": text},
    }
    return Call(0, call_id, name, text, raw)


def make_answer(*calls: Call, text: str | None = None, reason: str = "tool_calls") -> Answer:
    message: JSONObject = {"role": "assistant", "content": text, "x_signature": "s"}
    if calls:
        message["tool_calls"] = [call.raw for call in calls]
    return Answer(message, list(calls), reason, None, {}, None, complete=True)


def make_search(query: str, call_id: str = "s1") -> Call:
    return make_call("tool_search", {"queries": [query]}, call_id)


def tool_names(body: bytes) -> list[str]:
    return [tool["function"]["name"] for tool in orjson.loads(body).get("tools", [])]
