"""Odd searches: how they are written, what they ask for, and when they end."""

import time

import orjson
import pytest

from proxy.upstream.transport import Prepared
from proxy.wire import JSONObject
from tests.edgecases.scene import names, play, see, settings
from tests.tools.samples import function
from tests.turns import (
    Stage,
    call,
    completion,
    events,
    request,
    search,
    stage,
)

pytestmark = pytest.mark.anyio


def _search(arguments: str, call_id: str = "s1") -> JSONObject:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": "tool_search", "arguments": arguments},
    }


async def _after(*made: JSONObject, stream: bool = False, **deferral: object) -> Stage:
    """A turn whose model searches like that and then answers."""
    make = events if stream else completion
    rounds = [make(None, [one], number=number) for number, one in enumerate(made, 1)]
    theatre = stage(*rounds, make("Done.", number=9), settings=settings(**deferral))
    seen = await see(theatre, request(stream=stream))
    assert (seen.text, seen.calls, seen.reason) == ("Done.", [], "stop")
    return theatre


def _told(theatre: Stage) -> JSONObject:
    told: JSONObject = orjson.loads(theatre.bodies[-1]["messages"][-1]["content"])
    return told


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        pytest.param('{"queries":["storm"]}', True, marks=pytest.mark.item("search/queries")),
        pytest.param('{"query":"storm"}', True, marks=pytest.mark.item("search/query")),
        pytest.param('"storm"', True, marks=pytest.mark.item("search/bare-string")),
        pytest.param("storm", True, marks=pytest.mark.item("search/bare-string")),
        pytest.param("", False, marks=pytest.mark.item("search/empty-arguments")),
        pytest.param("{}", False, marks=pytest.mark.item("search/empty-arguments")),
        pytest.param('{"queries":[]}', False, marks=pytest.mark.item("search/empty-arguments")),
        pytest.param("null", False, marks=pytest.mark.item("search/null-arguments")),
        pytest.param('{"queries":null}', False, marks=pytest.mark.item("search/null-arguments")),
        pytest.param('{"queries":["storm"', True, marks=pytest.mark.item("search/broken-json")),
        pytest.param('{"queries":["sto', False, marks=pytest.mark.item("search/broken-json")),
    ],
)
async def test_arguments_however_written(arguments: str, found: bool, stream: bool) -> None:
    """A wish that can be read is answered; without one the model hears what there is."""
    theatre = await _after(_search(arguments), stream=stream)
    assert ("weather_alerts" in names(theatre.bodies[1])) is found
    assert _told(theatre)["note"]
    sent = theatre.bodies[1]["messages"][-2]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(orjson.loads(sent), dict)


@pytest.mark.parametrize(
    ("limit", "most"),
    [
        pytest.param("0", 1, marks=pytest.mark.item("search/limit-zero")),
        pytest.param("-1", 1, marks=pytest.mark.item("search/limit-negative")),
        pytest.param("1000000000", 10, marks=pytest.mark.item("search/limit-huge")),
        pytest.param("1e9", 5, marks=pytest.mark.item("search/limit-huge")),
        pytest.param('"2"', 2, marks=pytest.mark.item("search/limit-text")),
    ],
)
async def test_limits(limit: str, most: int) -> None:
    """Whatever the model asks for, at least one tool and at most ten are loaded."""
    tools = [function(f"paint_{n}", f"Paints wall number {n}.") for n in range(20)]
    made = _search(f'{{"queries":["paint wall"],"limit":{limit}}}')
    theatre = stage(
        completion(None, [made]), completion("Hi", number=2), settings=settings(search_max_new=20)
    )
    await see(theatre, {**request(), "tools": tools})
    assert len(names(theatre.bodies[1])) == 1 + most


@pytest.mark.item("search/unknown-group")
async def test_a_group_that_is_not_there() -> None:
    """It is ignored: a wrong guess of the server must not hide the tool."""
    theatre = await _after(_search('{"queries":["storm"],"group":"zeus"}'))
    assert "weather_alerts" in names(theatre.bodies[1])


@pytest.mark.item("search/regex-bomb")
async def test_a_pattern_that_explodes() -> None:
    """It finds nothing, soon."""
    began = time.perf_counter()
    theatre = await _after(_search('{"queries":["/(([a-z ])+.)+[A-Z]([a-z ])+$/"]}'))
    assert time.perf_counter() - began < 2
    assert _told(theatre)["note"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("mail_delete", marks=pytest.mark.item("search/exact-name")),
        pytest.param("Mail_Delete", marks=pytest.mark.item("search/wrong-case")),
        pytest.param("MAILDELETE", marks=pytest.mark.item("search/wrong-case")),
        pytest.param("select:Mail_DELETE", marks=pytest.mark.item("search/wrong-case")),
    ],
)
async def test_names(name: str) -> None:
    """A tool's name finds the tool, first of all, in any case."""
    theatre = await _after(search(name))
    assert names(theatre.bodies[1])[1] == "mail_delete"


@pytest.mark.parametrize("delivery", ["append", "frozen"])
@pytest.mark.item("search/only-loaded")
async def test_hits_that_are_all_loaded(delivery: str) -> None:
    """The model hears that it can call them; nothing is loaded twice."""
    twice = [search("select:mail_send", "s1"), search("select:mail_send,Mail_Send", "s2")]
    theatre = await _after(*twice, delivery=delivery)
    assert _told(theatre)["already_loaded"] == ["mail_send"]
    assert _told(theatre)["loaded"] == []
    assert names(theatre.bodies[2]).count("mail_send") == (delivery == "append")


@pytest.mark.item("search/zero-hits-twice")
async def test_two_searches_without_a_find() -> None:
    """The second one is the last: the next round has no search tool to call."""
    theatre = await _after(search("qqq"), search("zzz", "s2"), max_rounds=9)
    assert len(theatre.bodies) == 3
    assert theatre.bodies[2]["tool_choice"] == "none"
    assert "Do not repeat" in _told(theatre)["note"]


@pytest.mark.item("search/same-query", "reported/found-never-called")
async def test_the_same_query_three_times() -> None:
    """It is answered once, and after the second repetition no more searches are possible."""
    same = [search("storm warnings", f"s{n}") for n in range(3)]
    theatre = await _after(*same, max_rounds=9)
    assert len(theatre.bodies) == 4
    assert [len(names(body)) for body in theatre.bodies] == [1, 2, 2, 1]
    assert "already answered" in _told(theatre)["note"]


@pytest.mark.item("search/paraphrases", "reported/endless-searches", "reported/found-never-called")
async def test_a_wish_in_ever_new_words() -> None:
    """Searches that find only what is loaded end as well, whatever their words."""
    words = ["storm", "storm warnings", "warnings of storms", "storms in force", "any storm"]
    theatre = await _after(*(search(text, f"s{n}") for n, text in enumerate(words[:3])))
    assert len(theatre.bodies) == 4
    assert "tool_search" not in names(theatre.bodies[-1])


@pytest.mark.item("search/rounds-exhausted", "reported/endless-searches")
async def test_four_rounds_and_no_end() -> None:
    """A search in the fifth call reaches nobody, and the model is told to answer."""
    wishes = ["storm", "forecast", "send", "delete", "search mailbox"]
    rounds = [completion(None, [search(t, f"s{n}")], number=n) for n, t in enumerate(wishes)]
    told = completion("There is none.", number=6)
    theatre = stage(*rounds, told, settings=settings(search_limit=1))
    seen = await see(theatre, request())
    assert len(theatre.bodies) == 6
    assert "tool_search" not in names(theatre.bodies[-2])
    assert theatre.bodies[-1]["tool_choice"] == "none"
    assert (seen.text, seen.calls, seen.reason) == ("There is none.", [], "stop")
    assert b"tool_search" not in seen.raw


def _one_byte_arguments() -> Prepared:
    made = search("storm warnings")
    text = made["function"]["arguments"]
    opening = {**made, "index": 0, "function": {"name": "tool_search", "arguments": ""}}
    pieces = ({"tool_calls": [{"index": 0, "function": {"arguments": one}}]} for one in text)
    return play({"role": "assistant", "tool_calls": [opening]}, *pieces)


@pytest.mark.item("search/one-character-at-a-time")
async def test_arguments_one_character_at_a_time() -> None:
    """The search is understood, and the client sees none of its fifty pieces."""
    theatre = stage(_one_byte_arguments(), events("Calm.", number=2), settings=settings())
    seen = await see(theatre, request(stream=True))
    assert (seen.text, seen.calls) == ("Calm.", [])
    assert "weather_alerts" in names(theatre.bodies[1])


def _ending(made: JSONObject, reason: str, stream: bool) -> Prepared:
    """A message with that call that says that it ended for that reason."""
    if not stream:
        return completion(None, [made], reason=reason)
    return play({"role": "assistant", "tool_calls": [{**made, "index": 0}]}, reason=reason)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "reason",
    [
        pytest.param("stop", marks=pytest.mark.item("search/finish-stop")),
        pytest.param("function_call", marks=pytest.mark.item("search/finish-function-call")),
    ],
)
async def test_a_search_that_ends_with_another_reason(reason: str, stream: bool) -> None:
    """Calls count, not the reason: the search is answered, and the last message says why it ended.

    A search that comes after the last round is told so, and leaves no client waiting for a call.
    """
    searching = _ending(search("storm"), reason, stream)
    make = events if stream else completion
    theatre = stage(searching, make("Calm.", number=2), settings=settings())
    seen = await see(theatre, request(stream=stream))
    assert (seen.text, seen.calls, seen.reason) == ("Calm.", [], "stop")
    rounds = [_ending(search("storm"), reason, stream), _ending(search("x", "s2"), reason, stream)]
    theatre = stage(*rounds, make("Calm.", number=3), settings=settings(max_rounds=1))
    seen = await see(theatre, request(stream=stream))
    assert (seen.text, seen.calls, seen.reason) == ("Calm.", [], "stop")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.item("search/finish-function-call")
async def test_a_real_call_that_ends_with_function_call(stream: bool) -> None:
    """Behind a hidden round it says `tool_calls`, the reason that fits what the client reads."""
    made = call("weather_alerts", {"region": "x"})
    first = _ending(search("storm"), "function_call", stream)
    theatre = stage(first, _ending(made, "function_call", stream), settings=settings())
    seen = await see(theatre, request(stream=stream))
    assert (seen.names, seen.reason) == (["weather_alerts"], "tool_calls")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.item("search/text-beside")
async def test_text_beside_a_search(stream: bool) -> None:
    """The text reaches the client, and goes back up in the hidden message."""
    make = events if stream else completion
    first = make("Let me look.", [search("storm")])
    theatre = stage(first, make("Calm.", number=2), settings=settings())
    seen = await see(theatre, request(stream=stream))
    assert seen.text == "Let me look.\n\nCalm."
    assert theatre.bodies[1]["messages"][-2]["content"] == "Let me look."
