"""What a round's answer means, as transcripts: an answer in, calls and the next body out."""

import orjson
import pytest

from proxy.wire import JSON, JSONObject
from tests.upstream.desks import make_answer, make_call, make_desk, make_search, tool_names


def test_the_first_body_holds_the_search_tool_and_predictions() -> None:
    """All else of the request is the client's own."""
    desk = make_desk({"temperature": 0.5}, predicted=["mail_send"])
    body = orjson.loads(desk.body())
    assert tool_names(desk.body()) == ["tool_search", "mail_send"]
    assert body["temperature"] == 0.5
    assert "stream" not in body
    assert desk.visible() == {"mail_send"}


def test_a_search_is_answered_in_a_hidden_round() -> None:
    """The found tool is appended, the messages carry the search and its result."""
    desk = make_desk()
    settled = desk.settle(make_answer(make_search("storm warnings"), text="Let me look."))
    assert (settled.calls, settled.again, settled.context) == ((), True, "search_round")
    body = orjson.loads(desk.body())
    assert "weather_alerts" in tool_names(desk.body())
    assistant, result = body["messages"][1:]
    assert assistant["content"] == "Let me look."
    assert assistant["x_signature"] == "s"
    assert (result["role"], result["tool_call_id"]) == ("tool", "s1")
    assert "weather_alerts" in result["content"]
    assert body["stream"] is False
    assert desk.discovered


def test_a_mixed_message_parks_the_search() -> None:
    """The client gets the real call only; the search ran and waits for the next request."""
    desk = make_desk(predicted=["mail_send"])
    settled = desk.settle(
        make_answer(make_search("storm warnings"), make_call("mail_send", {"to": "x"}, "c2"))
    )
    assert [call.id for call in settled.calls] == ["c2"]
    assert not settled.again
    assert desk.parked.message is not None
    assert [call["id"] for call in desk.parked.message["tool_calls"]] == ["s1", "c2"]
    assert [result["tool_call_id"] for result in desk.parked.after] == ["s1"]
    assert desk.discovered


@pytest.mark.item("search/rounds-exhausted")
def test_rounds_are_limited() -> None:
    """After the last allowed round the search tool is gone and the model must answer."""
    desk = make_desk(predicted=["mail_send"], max_rounds=1)
    assert desk.settle(make_answer(make_search("storm warnings"))).again
    assert "tool_search" not in tool_names(desk.body())
    settled = desk.settle(make_answer(make_search("more"), text="done"))
    assert (settled.calls, settled.again) == ((), False)


@pytest.mark.item("search/rounds-exhausted")
def test_a_model_that_searches_on_is_told_to_answer() -> None:
    """Once, with calls forbidden; what it says then is the answer."""
    desk = make_desk(predicted=["mail_send"], max_rounds=1)
    desk.settle(make_answer(make_search("storm warnings")))
    settled = desk.settle(make_answer(make_search("more", "s2")))
    assert (settled.calls, settled.again, settled.finding) == ((), True, "limit")
    body = orjson.loads(desk.body())
    assert "tool_search" not in tool_names(desk.body())
    assert body["tool_choice"] == "none"
    call, result = body["messages"][-2:]
    assert result["tool_call_id"] == call["tool_calls"][0]["id"]
    assert "no more searches" in result["content"]
    settled = desk.settle(make_answer(text="There is none."))
    assert (settled.again, settled.mute) == (False, False)


def test_a_model_that_never_answers_is_no_answer() -> None:
    """An end that nobody spoke is not made up."""
    desk = make_desk(predicted=["mail_send"], max_rounds=1)
    answers = [desk.settle(make_answer(make_search("storm", f"s{at}"))) for at in range(3)]
    assert [one.again for one in answers] == [True, True, False]
    assert [one.mute for one in answers] == [False, False, True]


def test_a_required_call_stays_required() -> None:
    """The client's own wish is not overruled."""
    desk = make_desk({"tool_choice": "required"}, predicted=["mail_send"], max_rounds=1)
    desk.settle(make_answer(make_search("storm warnings")))
    assert desk.settle(make_answer(make_search("more", "s2"))).again
    assert orjson.loads(desk.body())["tool_choice"] == "required"


@pytest.mark.item("search/zero-hits-twice")
def test_searches_that_find_nothing_new_end() -> None:
    """Two barren rounds in a row are enough, whatever the limit."""
    desk = make_desk(predicted=["mail_send"], max_rounds=20)
    assert desk.settle(make_answer(make_search("zzz qqq"))).again
    assert desk.searching
    assert desk.settle(make_answer(make_search("zzz qqq"))).again
    assert not desk.searching


def test_a_hidden_round_says_what_it_came_to() -> None:
    """A search finds or does not, a wrong call is repaired, and then there is a limit."""
    desk = make_desk(predicted=["mail_send"], max_rounds=4)
    rounds = [make_search(words) for words in ("storm warnings", "zzz qqq", "more zzz")]
    findings = [desk.settle(make_answer(call)).finding for call in rounds]
    assert findings == ["found", "empty", "limit"]
    repaired = make_desk().settle(make_answer(make_call("no_such_tool", {}, "c1")))
    assert repaired.finding == "repaired"
    assert make_desk().settle(make_answer(text="Hello")).finding is None


def test_a_last_round_without_any_tool_forbids_calls() -> None:
    """With nothing loaded the search tool stays declared, so that its history remains valid."""
    desk = make_desk()
    desk.settle(make_answer(make_search("zzz")))
    desk.settle(make_answer(make_search("yyy")))
    body = orjson.loads(desk.body())
    assert tool_names(desk.body()) == ["tool_search"]
    assert body["tool_choice"] == "none"


@pytest.mark.item("stream/length-in-hidden-round")
@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_cut_answer_is_the_answer(reason: str) -> None:
    """A search that was cut off is dropped, not run."""
    desk = make_desk()
    settled = desk.settle(make_answer(make_search("half"), text="So", reason=reason))
    assert (settled.calls, settled.again) == ((), False)


@pytest.mark.item("reported/empty-turn")
def test_an_empty_answer_after_a_search_is_asked_again_once() -> None:
    """Some models fall silent when a tool appears."""
    desk = make_desk(predicted=["mail_send"])
    desk.settle(make_answer(make_search("storm warnings")))
    assert desk.settle(make_answer(reason="stop")).again
    assert not desk.settle(make_answer(reason="stop")).again


@pytest.mark.item("calls/duplicate-ids", "calls/missing-ids")
def test_hidden_ids_never_repeat() -> None:
    """An id that the history has, or that is missing, is replaced by a fresh one."""
    desk = make_desk(ids=["s1"])
    desk.settle(make_answer(make_search("storm"), make_search("mail", call_id="")))
    ids = [m["tool_call_id"] for m in orjson.loads(desk.body())["messages"] if m["role"] == "tool"]
    assert len(set(ids)) == 2
    assert "s1" not in ids
    assert "" not in ids


def test_broken_arguments_do_not_return_to_the_upstream() -> None:
    """Strict servers refuse a history whose arguments are no JSON object."""
    desk = make_desk()
    desk.settle(make_answer(make_call("tool_search", '{"queries": ["storm')))
    function = orjson.loads(desk.body())["messages"][1]["tool_calls"][0]["function"]
    assert function["arguments"] == "{}"


@pytest.mark.item("params/choice-required")
def test_required_stays_required_until_a_client_tool_is_called() -> None:
    """From the second round on the model can only call tools of the client."""
    desk = make_desk({"tool_choice": "required"})
    assert desk.settle(make_answer(make_search("storm warnings"))).again
    assert "tool_search" not in tool_names(desk.body())
    assert orjson.loads(desk.body())["tool_choice"] == "required"


@pytest.mark.item("params/choice-required-nothing-found")
def test_required_without_any_find_gets_the_whole_catalogue() -> None:
    """The client asked for a call, so in the end every tool is offered."""
    desk = make_desk({"tool_choice": "required"})
    desk.settle(make_answer(make_search("zzz")))
    desk.settle(make_answer(make_search("yyy")))
    assert len(tool_names(desk.body())) == 6


@pytest.mark.item("params/choice-search")
def test_a_forced_search_is_forced_once() -> None:
    """A client that names our tool gets a search first and an answer then."""
    choice = {"type": "function", "function": {"name": "tool_search"}}
    desk = make_desk({"tool_choice": choice})
    assert orjson.loads(desk.body())["tool_choice"] == choice
    assert desk.settle(make_answer(make_search("storm warnings"))).again
    assert orjson.loads(desk.body())["tool_choice"] == "auto"


@pytest.mark.item("params/choice-allowed-many")
def test_allowed_tools_are_narrowed_to_what_is_declared() -> None:
    """The upstream never hears of a tool that it was not given."""
    names = ["mail_send", "mail_search", "weather_now"]
    allowed = [{"type": "function", "function": {"name": name}} for name in names]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": allowed}}
    body = orjson.loads(make_desk({"tool_choice": choice}).body())
    assert [t["function"]["name"] for t in body["tool_choice"]["allowed_tools"]["tools"]] == names


def test_without_any_tool_left_the_choice_goes_too() -> None:
    """An upstream refuses a tool_choice beside an empty list."""
    body = orjson.loads(make_desk({"tool_choice": "none", "parallel_tool_calls": False}).body())
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
    assert orjson.loads(make_desk(body).body())["stream_options"] == sent


def test_options_of_ours_do_not_go_up() -> None:
    """The `usher` object is for the gateway only."""
    assert "usher" not in orjson.loads(make_desk({"usher": {"defer": "auto"}}).body())


@pytest.mark.item("params/parallel-false")
def test_a_client_of_single_calls_waits_for_the_search() -> None:
    """With parallel_tool_calls false the real call is dropped and made again after the search."""
    desk = make_desk({"parallel_tool_calls": False}, predicted=["mail_send"])
    settled = desk.settle(
        make_answer(make_search("storm warnings"), make_call("mail_send", {"to": "x"}, "c2"))
    )
    assert (settled.calls, settled.again) == ((), True)
    message = orjson.loads(desk.body())["messages"][1]
    assert [call["id"] for call in message["tool_calls"]] == ["s1"]


@pytest.mark.item("params/parallel-false")
def test_a_call_that_streams_already_is_not_taken_back() -> None:
    """The client has seen it, so the search waits for the next request instead."""
    body = {"parallel_tool_calls": False, "stream": True}
    desk = make_desk(body, predicted=["mail_send"])
    settled = desk.settle(
        make_answer(make_search("storm warnings"), make_call("mail_send", {"to": "x"}, "c2"))
    )
    assert [call.id for call in settled.calls] == ["c2"]
    assert desk.parked.message is not None
