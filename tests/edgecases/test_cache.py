"""What providers cache: the beginning of a request, and the marks that end it."""

from itertools import pairwise

import orjson
import pytest

from proxy.wire import JSONObject
from tests.edgecases.scene import USER, names, predicting, result, see, settings, user
from tests.tools.samples import city_tools
from tests.turns import Stage, call, completion, request, search, stage

pytestmark = pytest.mark.anyio

MARK: JSONObject = {"type": "ephemeral"}
CACHING = {"cache_models": ["*claude*"]}


def _tools_bytes(theatre: Stage) -> list[bytes]:
    """The array of tools of each upstream request, as it was written."""
    found = []
    for sent in theatre.transport.sent:
        assert isinstance(sent.body, bytes)
        start = sent.body.index(b'"tools":[') + len(b'"tools":[')
        depth, at = 1, start
        while depth:
            depth += {91: 1, 93: -1}.get(sent.body[at], 0)
            at += 1
        found.append(sent.body[start : at - 1])
    return found


async def _ten_turns(delivery: str) -> Stage:
    """Ten turns about different things, every other one with a search."""
    wishes = ["storm", "mail to Ann", "forecast", "delete", "thanks"] * 2
    replies = []
    for number, wish in enumerate(wishes):
        if number % 2:
            replies.append(completion(None, [search(f"{wish} {number}", f"s{number}")]))
        replies.append(completion(f"Answer {number}.", number=number))
    theatre = stage(*replies, settings=predicting(delivery=delivery))
    history: list[JSONObject] = []
    for wish in wishes:
        history.append(user(wish))
        history.append((await see(theatre, request(*history))).message)
    return theatre


@pytest.mark.item("cache/ten-turns", "reported/cache-lost", "reported/changing-list")
async def test_ten_turns() -> None:
    """The array of tools of each request is the beginning of the next one's."""
    arrays = _tools_bytes(await _ten_turns("append"))
    assert len(arrays) == 15
    assert all(after.startswith(before) for before, after in pairwise(arrays))
    assert arrays[-1] != arrays[0]


@pytest.mark.item("cache/ten-turns", "cache/frozen-constant", "reported/cache-lost")
async def test_ten_frozen_turns() -> None:
    """The array is the same to the byte, whatever was predicted, found or called."""
    theatre = await _ten_turns("frozen")
    assert len(set(_tools_bytes(theatre))) == 1
    messages = [body["messages"] for body in theatre.bodies]
    assert all(after[: len(before)] == before for before, after in pairwise(messages))


@pytest.mark.parametrize("delivery", ["append", "frozen"])
@pytest.mark.item(
    "cache/breakpoint-on-search", "cache/none-on-surfaced", "reported/mark-on-deferred"
)
async def test_the_search_tool_ends_the_cached_prefix(delivery: str) -> None:
    """It has the mark in every round and turn, and no found tool has one."""
    made = call("weather_alerts", {"region": "x"})
    theatre = stage(
        completion(None, [search("storm")]),
        completion(None, [made], number=2),
        completion("Calm.", number=3),
        settings=predicting(delivery=delivery, **CACHING),
    )
    seen = await see(theatre, request(user("storm"), model="claude-5"))
    await see(theatre, request(user("storm"), seen.message, result(), model="claude-5"))
    for sent in theatre.bodies:
        marked = [tool for tool in sent["tools"] if "cache_control" in tool]
        assert [tool["function"]["name"] for tool in marked] == ["tool_search"]
        assert marked[0]["cache_control"] == MARK
        assert orjson.dumps(sent).count(b'"cache_control"') == 1
    assert all(after.startswith(before) for before, after in pairwise(_tools_bytes(theatre)))


@pytest.mark.parametrize(("own", "ours"), [(0, 1), (3, 1), (4, 0), (5, 0)])
@pytest.mark.item("cache/at-most-four")
async def test_four_marks_at_most(own: int, ours: int) -> None:
    """The client's own marks come first, in tools as well as in messages."""
    part: JSONObject = {"type": "text", "text": '"cache_control"', "cache_control": MARK}
    tools = city_tools()
    if own:
        tools[0]["cache_control"] = MARK
    said: JSONObject = {"role": "user", "content": [part] * (own - 1) or "hello"}
    theatre = stage(completion("Hi"), settings=settings(**CACHING))
    await see(theatre, request(said, tools=tools, model="claude-5"))
    assert orjson.dumps(theatre.bodies[0]).count(b'"cache_control":') == own + ours


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.item("cache/none-on-surfaced")
async def test_no_mark_unless_asked_for(choice: str) -> None:
    """Other models, and gateways without the setting, get no mark of ours."""
    for model, deferral in (("gpt-9", CACHING), ("claude-5", {})):
        rounds = completion(None, [search("storm")]), completion("Hi", number=2)
        theatre = stage(*rounds, settings=settings(**deferral))
        await see(theatre, request(USER, tool_choice=choice, model=model))
        assert "weather_alerts" in names(theatre.bodies[1])
        assert b"cache_control" not in orjson.dumps(theatre.bodies)


@pytest.mark.item("cache/none-on-surfaced")
async def test_a_marked_tool_of_the_client_stays_where_it_is() -> None:
    """It is the end of the client's own prefix, so it is neither deferred nor moved."""
    tools = city_tools()
    tools[2]["cache_control"] = MARK
    rounds = completion(None, [search("storm mail")]), completion("Hi", number=2)
    theatre = stage(*rounds, settings=settings())
    await see(theatre, {**request(), "tools": tools})
    assert all(body["tools"][0] == tools[2] for body in theatre.bodies)
    assert orjson.dumps(theatre.bodies[1]).count(b'"cache_control"') == 1
