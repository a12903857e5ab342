"""What a round's answer means, as transcripts: an answer in, calls and the next body out."""

from collections.abc import Sequence

import orjson
import pytest

from proxy.plan.envelope import open_envelope
from proxy.settings import Deferral
from proxy.stream.collect import Answer, Call
from proxy.tools.arrange import Wishes, arrange
from proxy.tools.choice import read_choice
from proxy.tools.history import read_history
from proxy.upstream.desk import Brief, Desk
from proxy.wire import JSON, JSONObject
from tests.tools.samples import city_tools, toolbox

_USER: JSONObject = {"role": "user", "content": "hi"}


def _desk(
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


def _call(name: str, arguments: JSON = None, call_id: str = "c1") -> Call:
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()
    raw: JSONObject = {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": text},
    }
    return Call(0, call_id, name, text, raw)


def _answer(*calls: Call, text: str | None = None, reason: str = "tool_calls") -> Answer:
    message: JSONObject = {"role": "assistant", "content": text, "x_signature": "s"}
    if calls:
        message["tool_calls"] = [call.raw for call in calls]
    return Answer(message, list(calls), reason, None, {}, None, complete=True)


def _search(query: str, call_id: str = "s1") -> Call:
    return _call("tool_search", {"queries": [query]}, call_id)


def _names(body: bytes) -> list[str]:
    return [tool["function"]["name"] for tool in orjson.loads(body).get("tools", [])]


def test_the_first_body_holds_the_search_tool_and_predictions() -> None:
    """All else of the request is the client's own."""
    desk = _desk({"temperature": 0.5}, predicted=["mail_send"])
    body = orjson.loads(desk.body())
    assert _names(desk.body()) == ["tool_search", "mail_send"]
    assert body["temperature"] == 0.5
    assert "stream" not in body
    assert desk.visible() == {"mail_send"}


def test_a_search_is_answered_in_a_hidden_round() -> None:
    """The found tool is appended, the messages carry the search and its result."""
    desk = _desk()
    settled = desk.settle(_answer(_search("storm warnings"), text="Let me look."))
    assert (settled.calls, settled.again, settled.context) == ((), True, "search_round")
    body = orjson.loads(desk.body())
    assert "weather_alerts" in _names(desk.body())
    assistant, result = body["messages"][1:]
    assert assistant["content"] == "Let me look."
    assert assistant["x_signature"] == "s"
    assert (result["role"], result["tool_call_id"]) == ("tool", "s1")
    assert "weather_alerts" in result["content"]
    assert body["stream"] is False
    assert desk.discovered


def test_a_declared_tool_is_the_clients() -> None:
    """Its call is not validated: the client's own check decides."""
    desk = _desk(predicted=["mail_send"])
    settled = desk.settle(_answer(_call("mail_send", {"wrong": 1})))
    assert [call.name for call in settled.calls] == ["mail_send"]
    assert not settled.again
    assert not desk.parked.before


def test_an_unloaded_tool_is_called_when_its_arguments_fit() -> None:
    """A listed tool needs no search when the model knows its arguments; slips are put right."""
    settled = _desk().settle(_answer(_call("mail_delete", {"id": "42"})))
    assert settled.calls[0].arguments == '{"id":42}'
    assert not settled.again


def test_an_unloaded_tool_with_wrong_arguments_is_repaired() -> None:
    """The model gets the error and the schema, and the tool is loaded."""
    desk = _desk()
    settled = desk.settle(_answer(_call("mail_delete", {"message": "x"})))
    assert (settled.again, settled.context) == (True, "repair")
    reply = orjson.loads(orjson.loads(desk.body())["messages"][-1]["content"])
    assert reply["path"] == "$"
    assert reply["parameters"]["required"] == ["id"]
    assert "mail_delete" in _names(desk.body())


def test_repairs_end() -> None:
    """After two repairs of an unknown tool the client gets the call unchanged."""
    desk = _desk()
    for _ in range(2):
        assert desk.settle(_answer(_call("reboot_everything", {"now": 1}))).again
    settled = desk.settle(_answer(_call("reboot_everything", {"now": 1})))
    assert settled.calls == (_call("reboot_everything", {"now": 1}),)


def test_a_mistaken_name_is_mapped_when_it_can_mean_only_one_tool() -> None:
    """Prefixes that models add are not an error when the arguments fit."""
    settled = _desk().settle(_answer(_call("functions.mail_delete", {"id": 1})))
    assert [call.name for call in settled.calls] == ["mail_delete"]


def test_an_unknown_name_gets_similar_ones() -> None:
    """The hidden answer lists no whole catalogue, only what is close."""
    desk = _desk()
    assert desk.settle(_answer(_call("mail-delete", {"id": "no"}))).again
    reply = orjson.loads(orjson.loads(desk.body())["messages"][-1]["content"])
    assert reply["similar"] == ["mail_delete"]


def test_a_mixed_message_parks_the_search() -> None:
    """The client gets the real call only; the search ran and waits for the next request."""
    desk = _desk(predicted=["mail_send"])
    settled = desk.settle(_answer(_search("storm warnings"), _call("mail_send", {"to": "x"}, "c2")))
    assert [call.id for call in settled.calls] == ["c2"]
    assert not settled.again
    assert desk.parked.message is not None
    assert [call["id"] for call in desk.parked.message["tool_calls"]] == ["s1", "c2"]
    assert [result["tool_call_id"] for result in desk.parked.after] == ["s1"]
    assert desk.discovered


def test_rounds_are_limited() -> None:
    """After the last allowed round the search tool is gone and the model must answer."""
    desk = _desk(predicted=["mail_send"], max_rounds=1)
    assert desk.settle(_answer(_search("storm warnings"))).again
    assert "tool_search" not in _names(desk.body())
    settled = desk.settle(_answer(_search("more"), text="done"))
    assert (settled.calls, settled.again) == ((), False)


def test_searches_that_find_nothing_new_end() -> None:
    """Two barren rounds in a row are enough, whatever the limit."""
    desk = _desk(predicted=["mail_send"], max_rounds=20)
    assert desk.settle(_answer(_search("zzz qqq"))).again
    assert desk.searching
    assert desk.settle(_answer(_search("zzz qqq"))).again
    assert not desk.searching


def test_a_last_round_without_any_tool_forbids_calls() -> None:
    """With nothing loaded the search tool stays declared, so that its history remains valid."""
    desk = _desk()
    desk.settle(_answer(_search("zzz")))
    desk.settle(_answer(_search("yyy")))
    body = orjson.loads(desk.body())
    assert _names(desk.body()) == ["tool_search"]
    assert body["tool_choice"] == "none"


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_cut_answer_is_the_answer(reason: str) -> None:
    """A search that was cut off is dropped, not run."""
    desk = _desk()
    settled = desk.settle(_answer(_search("half"), text="So", reason=reason))
    assert (settled.calls, settled.again) == ((), False)


def test_an_empty_answer_after_a_search_is_asked_again_once() -> None:
    """Some models fall silent when a tool appears."""
    desk = _desk(predicted=["mail_send"])
    desk.settle(_answer(_search("storm warnings")))
    assert desk.settle(_answer(reason="stop")).again
    assert not desk.settle(_answer(reason="stop")).again


def test_hidden_ids_never_repeat() -> None:
    """An id that the history has, or that is missing, is replaced by a fresh one."""
    desk = _desk(ids=["s1"])
    desk.settle(_answer(_search("storm"), _search("mail", call_id="")))
    ids = [m["tool_call_id"] for m in orjson.loads(desk.body())["messages"] if m["role"] == "tool"]
    assert len(set(ids)) == 2
    assert "s1" not in ids
    assert "" not in ids


def test_broken_arguments_do_not_return_to_the_upstream() -> None:
    """Strict servers refuse a history whose arguments are no JSON object."""
    desk = _desk()
    desk.settle(_answer(_call("tool_search", '{"queries": ["storm')))
    function = orjson.loads(desk.body())["messages"][1]["tool_calls"][0]["function"]
    assert function["arguments"] == "{}"


def test_required_stays_required_until_a_client_tool_is_called() -> None:
    """From the second round on the model can only call tools of the client."""
    desk = _desk({"tool_choice": "required"})
    assert desk.settle(_answer(_search("storm warnings"))).again
    assert "tool_search" not in _names(desk.body())
    assert orjson.loads(desk.body())["tool_choice"] == "required"


def test_required_without_any_find_gets_the_whole_catalogue() -> None:
    """The client asked for a call, so in the end every tool is offered."""
    desk = _desk({"tool_choice": "required"})
    desk.settle(_answer(_search("zzz")))
    desk.settle(_answer(_search("yyy")))
    assert len(_names(desk.body())) == 6


def test_a_forced_search_is_forced_once() -> None:
    """A client that names our tool gets a search first and an answer then."""
    choice = {"type": "function", "function": {"name": "tool_search"}}
    desk = _desk({"tool_choice": choice})
    assert orjson.loads(desk.body())["tool_choice"] == choice
    assert desk.settle(_answer(_search("storm warnings"))).again
    assert orjson.loads(desk.body())["tool_choice"] == "auto"


def test_allowed_tools_are_narrowed_to_what_is_declared() -> None:
    """The upstream never hears of a tool that it was not given."""
    names = ["mail_send", "mail_search", "weather_now"]
    allowed = [{"type": "function", "function": {"name": name}} for name in names]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": allowed}}
    body = orjson.loads(_desk({"tool_choice": choice}).body())
    assert [t["function"]["name"] for t in body["tool_choice"]["allowed_tools"]["tools"]] == names


def test_without_any_tool_left_the_choice_goes_too() -> None:
    """An upstream refuses a tool_choice beside an empty list."""
    body = orjson.loads(_desk({"tool_choice": "none", "parallel_tool_calls": False}).body())
    assert "tools" not in body
    assert "tool_choice" not in body
    assert "parallel_tool_calls" not in body


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (None, {"include_usage": True}),
        ({"include_obfuscation": False}, {"include_obfuscation": False, "include_usage": True}),
        ({"include_usage": False}, {"include_usage": True}),
        ({"include_usage": True}, {"include_usage": True}),
    ],
)
def test_streams_are_asked_for_usage(options: JSON, sent: JSONObject) -> None:
    """The ledger needs it; the client's other options stay."""
    body: JSONObject = {"stream": True}
    if options is not None:
        body["stream_options"] = options
    assert orjson.loads(_desk(body).body())["stream_options"] == sent


def test_options_of_ours_do_not_go_up() -> None:
    """The `usher` object is for the gateway only."""
    assert "usher" not in orjson.loads(_desk({"usher": {"defer": "auto"}}).body())


def test_a_client_of_single_calls_waits_for_the_search() -> None:
    """With parallel_tool_calls false the real call is dropped and made again after the search."""
    desk = _desk({"parallel_tool_calls": False}, predicted=["mail_send"])
    settled = desk.settle(_answer(_search("storm warnings"), _call("mail_send", {"to": "x"}, "c2")))
    assert (settled.calls, settled.again) == ((), True)
    message = orjson.loads(desk.body())["messages"][1]
    assert [call["id"] for call in message["tool_calls"]] == ["s1"]


def test_a_call_that_streams_already_is_not_taken_back() -> None:
    """The client has seen it, so the search waits for the next request instead."""
    body = {"parallel_tool_calls": False, "stream": True}
    desk = _desk(body, predicted=["mail_send"])
    settled = desk.settle(_answer(_search("storm warnings"), _call("mail_send", {"to": "x"}, "c2")))
    assert [call.id for call in settled.calls] == ["c2"]
    assert desk.parked.message is not None
