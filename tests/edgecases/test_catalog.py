"""Odd catalogues: their size, their names, their schemas, and what changes in a conversation."""

import orjson
import pytest

from proxy.settings import Settings
from proxy.wire import JSONObject
from tests.edgecases.scene import (
    USER,
    listing,
    many,
    names,
    predicting,
    result,
    see,
    settings,
    user,
)
from tests.tools.samples import city_tools, function
from tests.turns import call, completion, request, search, stage

pytestmark = pytest.mark.anyio

TEXT: JSONObject = {"type": "string"}


def _with(*tools: JSONObject) -> JSONObject:
    return {**request(), "tools": [*city_tools(), *tools]}


@pytest.mark.item("catalog/one")
async def test_a_single_tool() -> None:
    """Below the thresholds it passes; where a client wants all deferred, it is a search away."""
    raw = orjson.dumps({**request(), "tools": city_tools()[:1]})
    theatre = stage(completion("Hi"), settings=settings(min_tools=16))
    await see(theatre, raw)
    assert theatre.transport.sent[0].body == raw
    theatre = stage(
        completion(None, [search("weather")]), completion("Hi", number=2), settings=settings()
    )
    await see(theatre, raw)
    assert [names(body) for body in theatre.bodies] == [
        ["tool_search"],
        ["tool_search", "weather_now"],
    ]


@pytest.mark.parametrize(("count", "touched"), [(15, False), (16, True)])
@pytest.mark.item("catalog/fifteen-sixteen")
async def test_the_threshold_is_sixteen(count: int, touched: bool) -> None:
    """Fifteen small tools pass to the byte, sixteen are deferred."""
    theatre = stage(completion("Hi"), settings=settings(min_tools=16))
    raw = orjson.dumps({**request(), "tools": many(count)})
    await see(theatre, raw)
    assert (theatre.transport.sent[0].body != raw) is touched


@pytest.mark.parametrize("count", [128, 129, 600])
@pytest.mark.item("catalog/hundreds", "reported/only-a-count")
async def test_hundreds_of_tools(count: int) -> None:
    """None is lost: the last one is found by name, and what goes up fits any provider."""
    last = f"server{(count - 1) % 20}__act{count - 1}"
    theatre = stage(
        completion(None, [search(last)]), completion("Hi", number=2), settings=settings()
    )
    await see(theatre, {**request(), "tools": many(count)})
    assert names(theatre.bodies[0]) == ["tool_search"]
    assert last in names(theatre.bodies[1])
    assert len(theatre.bodies[1]["tools"]) <= 128
    assert all(f"server{number}__*" in listing(theatre.bodies[0]) for number in range(20))


@pytest.mark.item("catalog/hundreds", "params/choice-required-nothing-found")
async def test_the_whole_catalogue_is_no_more_than_a_provider_takes() -> None:
    """Kept tools count: what is offered in the end is 128 tools in all."""
    rounds = [completion(None, [search("zzz")], number=n) for n in (1, 2)]
    theatre = stage(*rounds, completion("Hi", number=3), settings=settings(pin=["server7__*"]))
    await see(theatre, {**request(tool_choice="required"), "tools": many(300)})
    assert len(theatre.bodies[-1]["tools"]) == 128


@pytest.mark.item("catalog/all-pinned")
async def test_all_pinned() -> None:
    """With nothing left to defer the request is the client's own."""
    theatre = stage(completion("Hi"), settings=settings(pin=["*"]))
    raw = orjson.dumps(request())
    await see(theatre, raw)
    assert theatre.transport.sent[0].body == raw


@pytest.mark.item("catalog/identical-duplicates", "catalog/conflicting-duplicates")
async def test_duplicates() -> None:
    """Copies are one tool; two tools of one name both go up, for the upstream to judge."""
    other = function("twin", "Another one.", b=TEXT)
    first = function("twin", "One.", a=TEXT)
    theatre = stage(completion("Hi"), settings=settings())
    await see(theatre, _with(city_tools()[1], first, other))
    body = theatre.bodies[0]
    assert body["tools"][:2] == [first, other]
    assert names(body) == ["twin", "twin", "tool_search"]
    assert listing(body).count("forecast") == 1


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        pytest.param("n" * 64, False, marks=pytest.mark.item("catalog/name-64-65")),
        pytest.param("n" * 65, True, marks=pytest.mark.item("catalog/name-64-65")),
        pytest.param("a.b", True, marks=pytest.mark.item("catalog/name-characters")),
        pytest.param("a:b", True, marks=pytest.mark.item("catalog/name-characters")),
        pytest.param("größe", True, marks=pytest.mark.item("catalog/name-characters")),
        pytest.param("天気", True, marks=pytest.mark.item("catalog/name-characters")),
    ],
)
@pytest.mark.item("reported/cut-names")
async def test_names_that_upstreams_refuse(name: str, kept: bool) -> None:
    """They are never hidden: the upstream's error comes at once, not many rounds later."""
    theatre = stage(completion("Hi"), settings=settings())
    await see(theatre, _with(function(name, a=TEXT)))
    assert (name in names(theatre.bodies[0])) is kept


@pytest.mark.parametrize("delivery", ["append", "frozen"])
@pytest.mark.item("catalog/our-names", "reported/unstable-suffix")
async def test_a_client_with_tools_of_our_names(delivery: str) -> None:
    """Ours get other names, and calls of the client's own reach the client."""
    mine = [function("tool_search", "Mine.", x=TEXT), function("call_tool", "Mine.", y=TEXT)]
    made = [call("tool_search", {"x": "a"}, "a"), call("call_tool", {"y": "b"}, "b")]
    theatre = stage(completion(None, made), settings=settings(delivery=delivery))
    seen = await see(theatre, _with(*mine))
    assert seen.calls == made
    ours = ["find_tools", "use_tool"] if delivery == "frozen" else ["find_tools"]
    assert names(theatre.bodies[0]) == ours


@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param({}, marks=pytest.mark.item("catalog/no-parameters"), id="absent"),
        pytest.param(
            {"parameters": {}}, marks=pytest.mark.item("catalog/empty-parameters"), id="empty"
        ),
        pytest.param(
            {"parameters": True}, marks=pytest.mark.item("catalog/boolean-schema"), id="true"
        ),
        pytest.param(
            {"parameters": False}, marks=pytest.mark.item("catalog/boolean-schema"), id="false"
        ),
        pytest.param(
            {"parameters": {"$ref": "http://127.0.0.1:9/schema"}},
            marks=pytest.mark.item("catalog/remote-reference"),
            id="remote",
        ),
    ],
)
@pytest.mark.parametrize("delivery", ["append", "frozen"])
async def test_schemas_that_say_nothing(parameters: JSONObject, delivery: str) -> None:
    """The tool is listed, loaded as it was written, and called with whatever the model says."""
    odd: JSONObject = {"type": "function", "function": {"name": "oddity", **parameters}}
    made = call("oddity", {"free": 1})
    theatre = stage(
        completion(None, [search("select:oddity")]),
        completion(None, [made], number=2),
        settings=settings(delivery=delivery),
    )
    seen = await see(theatre, _with(odd))
    assert seen.calls == [made]
    assert "oddity" in listing(theatre.bodies[0])
    assert (odd in theatre.bodies[1]["tools"]) is (delivery == "append")


@pytest.mark.item("catalog/long-description")
async def test_a_description_of_a_megabyte() -> None:
    """It is neither listed nor repeated in a result, and goes up whole only when it is found."""
    giant = function("giant", "Paints walls. " * 80_000, a=TEXT)
    theatre = stage(
        completion(None, [search("paint walls")]),
        completion("Hi", number=2),
        settings=predicting(),
    )
    await see(theatre, _with(giant))
    assert len(orjson.dumps(theatre.bodies[0])) < 5_000
    assert giant in theatre.bodies[1]["tools"]
    assert len(theatre.bodies[1]["messages"][-1]["content"]) < 1_000


@pytest.mark.parametrize(("query", "found"), [("天气", "weather_cn"), ("🍕 pizza", "pizza")])
@pytest.mark.item("catalog/foreign-description", "reported/unspaced-clause")
async def test_descriptions_of_other_scripts(query: str, found: str) -> None:
    """They are searched in their own script and go up by their own bytes."""
    tools = [
        function("weather_cn", "查询城市的天气预报。", a=TEXT),
        function("pizza", "Orders 🍕."),
    ]
    theatre = stage(
        completion(None, [search(query)]), completion("Hi", number=2), settings=settings()
    )
    await see(theatre, {**request(), "tools": [*city_tools()[3:], *tools]})
    assert found in names(theatre.bodies[1])


@pytest.mark.item("catalog/key-order")
async def test_a_found_tool_has_the_clients_bytes() -> None:
    """Order of keys, spaces, escapes and numbers of any length."""
    raw = (
        b'{ "function":{"parameters":{"type":"object","properties":{"z":{"maximum":1.0e2},'
        b'"a":{"minimum":123456789012345678901}}},"description":"\\u00e9","name":"odd_bytes"},'
        b'"type":"function" }'
    )
    body = orjson.dumps(request()).replace(b'"tools":[', b'"tools":[' + raw + b",")
    theatre = stage(
        completion(None, [search("select:odd_bytes")]),
        completion("Hi", number=2),
        settings=settings(),
    )
    await see(theatre, body)
    sent = theatre.transport.sent[1].body
    assert isinstance(sent, bytes)
    assert raw in sent


@pytest.mark.parametrize(("inside", "outside", "kept"), [(True, True, False), (False, False, True)])
@pytest.mark.item("catalog/defer-loading-twice", "reported/left-over-mark")
async def test_marks_on_both_levels(inside: bool, outside: bool, kept: bool) -> None:
    """They are honoured and never go up, from kept tools or from found ones."""
    plain = function("marked", "Marked.", a=TEXT)
    marked = {
        **plain,
        "function": {**plain["function"], "defer_loading": inside},
        "defer_loading": outside,
    }
    theatre = stage(
        completion(None, [search("select:marked")]), completion("Hi", number=2), settings=settings()
    )
    await see(theatre, _with(marked))
    assert (plain in theatre.bodies[0]["tools"]) is kept
    assert plain in theatre.bodies[1]["tools"]
    assert all(b"defer_loading" not in orjson.dumps(body) for body in theatre.bodies)


async def _second_turn(tools: list[JSONObject], settings: Settings) -> JSONObject:
    """What goes up when the catalogue has changed since a search found `weather_alerts`."""
    made = call("weather_alerts", {"region": "x"})
    theatre = stage(
        completion(None, [search("storm warnings")]),
        completion(None, [made], number=2),
        completion("Hi", number=3),
        settings=settings,
    )
    seen = await see(theatre, request(USER))
    await see(theatre, {**request(USER, seen.message, result(), user("more")), "tools": tools})
    return theatre.bodies[2]


@pytest.mark.parametrize(
    ("change", "declared"),
    [
        pytest.param("added", True, marks=pytest.mark.item("catalog/tool-added")),
        pytest.param("removed", False, marks=pytest.mark.item("catalog/tool-removed")),
        pytest.param("renamed", False, marks=pytest.mark.item("catalog/tool-renamed")),
        pytest.param("edited", True, marks=pytest.mark.item("catalog/description-edited")),
        pytest.param("shuffled", True, marks=pytest.mark.item("catalog/shuffled")),
    ],
)
@pytest.mark.parametrize("delivery", ["append", "frozen"])
async def test_a_catalogue_that_changes(change: str, declared: bool, delivery: str) -> None:
    """The conversation goes on with the tools that are there now, and its history stays whole."""
    tools = city_tools()
    if change == "added":
        tools.append(function("added_later", "New.", a=TEXT))
    elif change == "removed":
        tools = [tool for tool in tools if tool["function"]["name"] != "weather_alerts"]
    elif change == "renamed":
        tools[2]["function"]["name"] = "storm_alerts"
    elif change == "edited":
        tools[2]["function"]["description"] = "Edited."
    else:
        tools.reverse()
    body = await _second_turn(tools, settings(delivery=delivery))
    roles = [message["role"] for message in body["messages"]]
    assert roles[:5] == ["user", "assistant", "tool", "assistant", "tool"]
    assert all(made["id"] for message in body["messages"] for made in message.get("tool_calls", []))
    if delivery == "append":
        assert ("weather_alerts" in names(body)) is declared
        assert all(tool in tools for tool in body["tools"][1:])
    else:
        assert names(body) == ["tool_search", "call_tool"]
    if change in ("added", "renamed"):
        assert "later" in listing(body) or "storm" in listing(body)


@pytest.mark.item("catalog/shuffled")
async def test_the_order_of_tools_does_not_decide_what_is_found() -> None:
    """A search of a shuffled catalogue loads the same tools."""
    found = []
    for tools in (city_tools(), city_tools()[::-1]):
        theatre = stage(
            completion(None, [search("weather forecast")]),
            completion("Hi", number=2),
            settings=settings(),
        )
        await see(theatre, {**request(), "tools": tools})
        found.append(set(names(theatre.bodies[1])))
    assert found[0] == found[1]
