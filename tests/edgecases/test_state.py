"""The store of hidden rounds is lost, shared, full or wrong, and clients rewrite their history."""

import orjson
import pytest

from proxy.plan.identity import Caller
from proxy.state.memory import MemoryStore
from proxy.wire import JSONObject
from tests.edgecases.scene import USER, names, result, see, settings, user
from tests.turns import Stage, call, completion, request, search, stage

pytestmark = pytest.mark.anyio

deliveries = pytest.mark.parametrize("delivery", ["append", "frozen"])
PAIR = [call("mail_send", {"to": "Ann"}, "c1"), call("mail_delete", {"id": 1}, "c2")]
SAID: JSONObject = {"role": "assistant", "content": None, "tool_calls": PAIR}


def _mixed() -> list[JSONObject]:
    return [search("storm"), *PAIR]


async def _first(store: MemoryStore, caller: Caller | None = None, **deferral: object) -> None:
    """A first request, whose answer holds two real calls and a search."""
    theatre = stage(completion(None, _mixed()), settings=settings(**deferral), store=store)
    seen = await see(theatre, request(USER), caller=caller or Caller())
    assert seen.calls == PAIR


async def _second(
    store: MemoryStore, *results: JSONObject, caller: Caller | None = None, **deferral: object
) -> list[JSONObject]:
    """The messages of the next request's upstream call, made by another process."""
    theatre = stage(completion("Done."), settings=settings(**deferral), store=store)
    await see(theatre, request(USER, SAID, *results), caller=caller or Caller())
    assert names(theatre.bodies[0])[0] == "tool_search"
    messages: list[JSONObject] = theatre.bodies[0]["messages"]
    return messages


def _ids(messages: list[JSONObject]) -> list[str]:
    return [message["tool_call_id"] for message in messages if message["role"] == "tool"]


def _called(messages: list[JSONObject]) -> list[str]:
    return [made["id"] for m in messages for made in m.get("tool_calls") or []]


BOTH = result("c1"), result("c2")


@pytest.mark.item("state/replicas")
async def test_two_gateways() -> None:
    """With a shared store either of them can go on with the conversation."""
    store = MemoryStore(1_000_000, 60)
    await _first(store)
    messages = await _second(store, *BOTH)
    assert _called(messages) == ["s1", "c1", "c2"]
    assert sorted(_ids(messages)) == ["c1", "c2", "s1"]


@deliveries
@pytest.mark.item("state/restart", "state/replicas")
async def test_a_gateway_that_knows_nothing(delivery: str) -> None:
    """What was hidden is gone; what the client has is whole, and its tools are declared."""
    await _first(MemoryStore(1_000_000, 60), delivery=delivery)
    messages = await _second(MemoryStore(1_000_000, 60), *BOTH, delivery=delivery)
    if delivery == "append":
        assert messages == [USER, SAID, *BOTH]
    assert _called(messages)[-2:] == ["c1", "c2"]
    assert _ids(messages)[-2:] == ["c1", "c2"]
    assert b"weather_alerts" not in orjson.dumps(messages)


@pytest.mark.item("state/eviction")
async def test_a_store_without_room() -> None:
    """It keeps nothing, and nothing fails."""
    store = MemoryStore(10, 60)
    await _first(store)
    assert await _second(store, *BOTH) == [USER, SAID, *BOTH]


@pytest.mark.item("state/expired")
async def test_what_has_expired() -> None:
    """After its time a parked search is gone, as after a restart."""
    now = [0.0]
    store = MemoryStore(1_000_000, 60, lambda: now[0])
    await _first(store)
    now[0] = 59.0
    assert _called(await _second(store, *BOTH)) == ["s1", "c1", "c2"]
    now[0] = 10_000.0
    assert await _second(store, *BOTH) == [USER, SAID, *BOTH]


@pytest.mark.item("state/same-ids")
async def test_the_same_ids_under_two_keys() -> None:
    """Another tenant's identical conversation gets nothing of the first one's."""
    store = MemoryStore(1_000_000, 60)
    await _first(store, Caller(tenant="one"))
    assert await _second(store, *BOTH, caller=Caller(tenant="two")) == [USER, SAID, *BOTH]
    assert len(await _second(store, *BOTH, caller=Caller(tenant="one"))) == 5


@pytest.mark.item("state/dropped-result")
async def test_one_of_two_results() -> None:
    """The parked search returns; whether one result is enough is the upstream's to say."""
    store = MemoryStore(1_000_000, 60)
    await _first(store)
    messages = await _second(store, result("c2"))
    assert _called(messages) == ["s1", "c1", "c2"]
    assert sorted(_ids(messages)) == ["c2", "s1"]


@pytest.mark.item("state/reordered-results")
async def test_results_in_another_order() -> None:
    """They keep the client's order; the hidden one stands with them."""
    store = MemoryStore(1_000_000, 60)
    await _first(store)
    messages = await _second(store, *BOTH[::-1])
    assert [call_id for call_id in _ids(messages) if call_id != "s1"] == ["c2", "c1"]
    assert "s1" in _ids(messages)


@pytest.mark.parametrize("rewritten", ['{ "to" : "Ann" }', '{"to":"Bob"}', "{broken"])
@deliveries
@pytest.mark.item("state/edited-call")
async def test_a_call_that_the_user_corrected(rewritten: str, delivery: str) -> None:
    """The model sees what was really called; a call that only looks different keeps its bytes."""
    store = MemoryStore(1_000_000, 60)
    await _first(store, delivery=delivery)
    corrected = {**PAIR[0], "function": {"name": "mail_send", "arguments": rewritten}}
    said: JSONObject = {**SAID, "tool_calls": [corrected, PAIR[1]]}
    theatre = stage(completion("Done."), settings=settings(delivery=delivery), store=store)
    await see(theatre, request(USER, said, *BOTH))
    calls = [m["tool_calls"] for m in theatre.bodies[0]["messages"] if m.get("tool_calls")][-1]
    assert [made["id"] for made in calls] == ["s1", "c1", "c2"]
    shown = calls[1]["function"]["arguments"]
    if delivery == "append":
        assert shown == ('{"to":"Ann"}' if "Ann" in rewritten else rewritten)
    else:
        inner = orjson.loads(shown)["arguments"]
        assert inner == (rewritten if "{b" in rewritten else orjson.loads(rewritten))


@deliveries
@pytest.mark.item("state/forks")
async def test_two_branches(delivery: str) -> None:
    """Both have the hidden part of what they share, and neither that of the other."""
    store = MemoryStore(1_000_000, 60)
    theatre = stage(
        completion(None, [search("storm")]),
        completion("Calm.", number=2),
        completion(None, [search("delete message", "s2")], number=3),
        completion("Gone.", number=4),
        completion("Left.", number=5),
        completion("Right.", number=6),
        settings=settings(delivery=delivery),
        store=store,
    )
    calm: JSONObject = {"role": "assistant", "content": "Calm."}
    gone: JSONObject = {"role": "assistant", "content": "Gone."}
    await see(theatre, request(USER))
    await see(theatre, request(USER, calm, user("left")))
    await see(theatre, request(USER, calm, user("left"), gone, user("more")))
    await see(theatre, request(USER, calm, user("right"), gone, user("more")))
    left, right = theatre.bodies[4]["messages"], theatre.bodies[5]["messages"]
    assert (_called(left), _called(right)) == (["s1", "s2"], ["s1"])
    assert left[:4] == right[:4] == theatre.bodies[2]["messages"][:4]


@deliveries
@pytest.mark.item("state/summarised")
async def test_a_summary_instead_of_the_history(delivery: str) -> None:
    """The conversation starts anew: valid, searchable, and without what nobody remembers."""
    store = MemoryStore(1_000_000, 60)
    await _first(store, delivery=delivery)
    theatre = stage(completion("Hi"), settings=settings(delivery=delivery), store=store)
    summary = user("So far: a mail was sent to Ann.")
    await see(theatre, request(summary, user("and now?")))
    assert theatre.bodies[0]["messages"] == [summary, user("and now?")]
    assert names(theatre.bodies[0])[0] == "tool_search"


@deliveries
@pytest.mark.item("state/summarised")
async def test_a_summary_in_front_of_the_last_calls(delivery: str) -> None:
    """Calls that the client kept have their results and no others."""
    store = MemoryStore(1_000_000, 60)
    await _first(store, delivery=delivery)
    theatre = stage(completion("Hi"), settings=settings(delivery=delivery), store=store)
    await see(theatre, request(user("So far: hello."), SAID, *BOTH))
    messages = theatre.bodies[0]["messages"]
    assert _called(messages)[-2:] == ["c1", "c2"]
    assert sorted(_called(messages)) == sorted(_ids(messages))


async def _foreign(delivery: str) -> Stage:
    made = call("tool_search", {"query": "storm"}, "toolu_1")
    said: JSONObject = {"role": "assistant", "content": None, "tool_calls": [made]}
    found = result("toolu_1", '{"tools":["weather_alerts"]}')
    theatre = stage(completion("Hi"), settings=settings(delivery=delivery))
    await see(theatre, request(USER, said, found, user("go on")))
    assert theatre.bodies[0]["messages"] == [USER, said, found, user("go on")]
    return theatre


@deliveries
@pytest.mark.item("state/foreign-ids")
async def test_searches_of_another_gateway(delivery: str) -> None:
    """They are history like any other: left alone, and nothing is concluded from them."""
    theatre = await _foreign(delivery)
    ours = ["tool_search", "call_tool"] if delivery == "frozen" else ["tool_search"]
    assert names(theatre.bodies[0]) == ours


@pytest.mark.item("state/foreign-ids")
async def test_calls_of_tools_that_are_gone() -> None:
    """A call of a tool that the client does not offer any more stays in its history."""
    made = call("teleport", {"to": "Mars"}, "x9")
    said: JSONObject = {"role": "assistant", "content": None, "tool_calls": [made]}
    theatre = stage(completion("Hi"), settings=settings())
    await see(theatre, request(USER, said, result("x9"), user("go on")))
    assert theatre.bodies[0]["messages"][1:3] == [said, result("x9")]
    assert names(theatre.bodies[0]) == ["tool_search"]
