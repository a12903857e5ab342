"""Odd calls: of tools that were not loaded, under odd names, with odd arguments, in odd streams."""

import orjson
import pytest

from proxy.upstream.transport import Prepared
from proxy.wire import JSONObject
from tests.edgecases.scene import USER, Seen, names, play, result, see, settings
from tests.tools.samples import city_tools, function
from tests.turns import Stage, call, completion, events, request, search, stage

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
deliveries = pytest.mark.parametrize("delivery", ["append", "frozen"])


def _made(name: str, arguments: str, call_id: str = "c1") -> JSONObject:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def _say(calls: list[JSONObject], stream: bool, number: int = 1) -> Prepared:
    return (events if stream else completion)(None, calls, number=number)


async def _turn(
    *rounds: list[JSONObject], stream: bool = False, **deferral: object
) -> tuple[Seen, Stage]:
    """A turn whose model makes those calls, round by round."""
    replies = [_say(calls, stream, number) for number, calls in enumerate(rounds, 1)]
    theatre = stage(*replies, settings=settings(**deferral))
    return await see(theatre, request(stream=stream)), theatre


@both
@pytest.mark.item("calls/unloaded-valid", "reported/called-unloaded")
async def test_an_unloaded_tool_with_fitting_arguments(stream: bool) -> None:
    """The client owns the tool, so the call is simply the client's; no round is spent."""
    made = call("mail_send", {"to": "Ann", "body": "hi"})
    seen, theatre = await _turn([made], stream=stream)
    assert seen.calls == [made]
    assert seen.reason == "tool_calls"
    assert len(theatre.bodies) == 1


@both
@deliveries
@pytest.mark.item(
    "calls/unloaded-repaired", "reported/guessed-arguments", "reported/unchecked-bridge"
)
async def test_a_repair(stream: bool, delivery: str) -> None:
    """The model hears what is wrong and sees the schema; the client sees the right call only."""
    right = call("mail_delete", {"id": 7}, "c2")
    rounds = [call("mail_delete", {"id": "seven"})], [right]
    seen, theatre = await _turn(*rounds, stream=stream, delivery=delivery)
    assert seen.calls == [right]
    hint = orjson.loads(theatre.bodies[1]["messages"][-1]["content"])
    assert hint["path"] == "$.id"
    assert hint["parameters"] == city_tools()[5]["function"]["parameters"]
    assert [row.context for row in theatre.ledger.rows] == ["repair", "main"]


@both
@deliveries
@pytest.mark.item("calls/invalid-twice", "reported/identical-bad-calls")
async def test_a_call_that_stays_wrong(stream: bool, delivery: str) -> None:
    """It reaches the client as it was made: the client's own check decides, never ours."""
    wrong = [_made("mail_delete", '{"id": "seven" }', f"c{number}") for number in range(3)]
    seen, theatre = await _turn(*([one] for one in wrong), stream=stream, delivery=delivery)
    assert seen.calls == [wrong[len(theatre.bodies) - 1]]
    assert len(theatre.bodies) == (2 if delivery == "append" else 3)


@both
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("mail-delete", marks=pytest.mark.item("calls/close-to-one")),
        pytest.param("mailDelete", marks=pytest.mark.item("calls/close-to-one")),
        pytest.param("mail_delet", marks=pytest.mark.item("calls/close-to-one")),
        pytest.param("functions.mail_delete", marks=pytest.mark.item("calls/prefixed-name")),
        pytest.param("mcp__mail_delete", marks=pytest.mark.item("calls/prefixed-name")),
    ],
)
async def test_a_name_that_can_only_mean_one(name: str, stream: bool) -> None:
    """With arguments that fit, the client gets the tool's own name."""
    seen, _ = await _turn([call(name, {"id": 7})], stream=stream)
    assert seen.names == ["mail_delete"]
    wrong = [call(name, {"what": 1})], [call("mail_delete", {"id": 7}, "c2")]
    seen, theatre = await _turn(*wrong, stream=stream)
    assert seen.names == ["mail_delete"]
    assert len(theatre.bodies) == 2


@both
@pytest.mark.item("calls/close-to-two", "reported/dumped-catalogue", "reported/merged-names")
async def test_a_name_that_could_mean_two(stream: bool) -> None:
    """Nobody guesses: the model hears both names and chooses."""
    twins = [function("get_user", "One."), function("get-user", "Other.")]
    rounds = _say([call("getUser")], stream), _say([call("get-user", None, "c2")], stream, 2)
    theatre = stage(*rounds, settings=settings())
    seen = await see(theatre, {**request(stream=stream), "tools": [*city_tools(), *twins]})
    assert seen.names == ["get-user"]
    hint = orjson.loads(theatre.bodies[1]["messages"][-1]["content"])
    assert hint["similar"] == ["get_user", "get-user"]
    assert "mail_send" not in theatre.bodies[1]["messages"][-1]["content"]


@both
@pytest.mark.parametrize(
    ("arguments", "accepted"),
    [
        pytest.param("", {}, marks=pytest.mark.item("calls/empty-arguments")),
        pytest.param("null", {}, marks=pytest.mark.item("calls/null-arguments")),
        pytest.param('"{\\"id\\": 7}"', {"id": 7}, marks=pytest.mark.item("calls/double-encoded")),
        pytest.param('{"id": 7}}', {"id": 7}, marks=pytest.mark.item("calls/trailing-garbage")),
    ],
)
async def test_arguments_that_are_only_badly_written(
    arguments: str, accepted: JSONObject, stream: bool
) -> None:
    """The client gets a JSON object."""
    free = function("free", "Takes anything.")
    rounds = _say([_made("free", arguments)], stream)
    theatre = stage(rounds, settings=settings())
    seen = await see(theatre, {**request(stream=stream), "tools": [*city_tools(), free]})
    assert seen.arguments == [accepted]
    assert len(theatre.bodies) == 1


@both
@pytest.mark.item("calls/null-arguments")
async def test_arguments_that_are_really_null(stream: bool) -> None:
    """A provider that sends null instead of a text means a call without arguments."""
    made = {"id": "c1", "type": "function", "function": {"name": "free", "arguments": None}}
    free = function("free", "Takes anything.")
    spoken = (
        play({"role": "assistant", "tool_calls": [{"index": 0, **made}]})
        if stream
        else completion(None, [made])
    )
    theatre = stage(spoken, settings=settings())
    seen = await see(theatre, {**request(stream=stream), "tools": [*city_tools(), free]})
    assert seen.arguments == [{}]


@both
@pytest.mark.item("calls/eight-parallel", "reported/index-holes")
async def test_eight_calls_at_once(stream: bool) -> None:
    """Declared or not, all arrive in order, and a search among them disappears."""
    calls = [call("mail_delete", {"id": number}, f"c{number}") for number in range(8)]
    seen, _ = await _turn(calls, stream=stream)
    assert seen.calls == calls
    system: JSONObject = {"role": "system", "content": "Use mail_delete."}
    theatre = stage(_say([*calls[:4], search("storm"), *calls[4:]], stream), settings=settings())
    seen = await see(theatre, request(system, USER, stream=stream))
    assert seen.calls == calls


@both
@deliveries
@pytest.mark.parametrize(
    "order",
    [
        pytest.param("sr", marks=pytest.mark.item("calls/mixed")),
        pytest.param("rs", marks=pytest.mark.item("calls/real-first")),
        pytest.param("swr", marks=pytest.mark.item("calls/mixed-invalid")),
        pytest.param("rws", marks=pytest.mark.item("calls/mixed-invalid", "calls/real-first")),
    ],
)
@pytest.mark.item("reported/leaked-search")
async def test_a_mixed_message(order: str, delivery: str, stream: bool) -> None:
    """The right call reaches the client; what it does not see returns with its results."""
    kinds = {
        "s": search("storm"),
        "w": call("mail_delete", {"id": "seven"}, "w1"),
        "r": call("mail_send", {"to": "Ann"}, "r1"),
    }
    said = _say([kinds[kind] for kind in order], stream)
    theatre = stage(said, completion("Done.", number=2), settings=settings(delivery=delivery))
    seen = await see(theatre, request(stream=stream))
    assert seen.calls == [kinds["r"]]
    await see(theatre, request(USER, seen.message, result("r1")))
    messages = theatre.bodies[1]["messages"]
    at = next(n for n, m in enumerate(messages) if len(m.get("tool_calls") or []) == len(order))
    assert [made["id"] for made in messages[at]["tool_calls"]] == [kinds[k]["id"] for k in order]
    answered = [message["tool_call_id"] for message in messages[at + 1 :]]
    assert sorted(answered) == sorted(kinds[kind]["id"] for kind in order)
    if delivery == "append":
        assert "weather_alerts" in names(theatre.bodies[1])


@both
@pytest.mark.item("calls/duplicate-ids")
async def test_one_id_for_two_calls(stream: bool) -> None:
    """Both real calls reach the client; a hidden one never takes the id of another."""
    pair = [call("mail_delete", {"id": 1}, "same"), call("mail_send", {"to": "Ann"}, "same")]
    seen, _ = await _turn(pair, stream=stream)
    assert seen.names == ["mail_delete", "mail_send"]
    again = [search("storm", "same")], [search("forecast", "same")], [pair[0]]
    seen, theatre = await _turn(*again, stream=stream)
    hidden = [m["tool_call_id"] for m in theatre.bodies[2]["messages"] if m["role"] == "tool"]
    assert len(set(hidden)) == 2
    assert seen.names == ["mail_delete"]


@both
@pytest.mark.item("calls/duplicate-ids", "calls/mixed")
async def test_one_id_for_a_search_and_a_real_call(stream: bool) -> None:
    """The real call keeps it, because the client answers by it."""
    said = _say([search("storm", "same"), call("mail_send", {"to": "Ann"}, "same")], stream)
    theatre = stage(said, completion("Done.", number=2), settings=settings())
    seen = await see(theatre, request(stream=stream))
    assert [made["id"] for made in seen.calls] == ["same"]
    await see(theatre, request(USER, seen.message, result("same")))
    message, *answers = theatre.bodies[1]["messages"][1:]
    ids = [made["id"] for made in message["tool_calls"]]
    assert ids[1] == "same" != ids[0]
    assert [answer["tool_call_id"] for answer in answers] == ids


@both
@pytest.mark.parametrize("absent", [{}, {"id": None}, {"id": ""}], ids=["absent", "null", "empty"])
@pytest.mark.item("calls/missing-ids")
async def test_a_call_without_id(absent: JSONObject, stream: bool) -> None:
    """The client gets one that it can answer, the hidden call one that nobody else has."""
    bare = {key: value for key, value in call("mail_delete", {"id": 1}).items() if key != "id"}
    hunt = {key: value for key, value in search("storm").items() if key != "id"}
    seen, theatre = await _turn([{**hunt, **absent}], [{**bare, **absent}], stream=stream)
    assert seen.calls[0]["id"]
    message, answer = theatre.bodies[1]["messages"][-2:]
    assert message["tool_calls"][0]["id"] == answer["tool_call_id"] != ""
    assert seen.calls[0]["id"] != answer["tool_call_id"]


def _piece(index: int, call_id: str | None, name: str | None, text: str = "") -> JSONObject:
    function: JSONObject = {"arguments": text}
    piece: JSONObject = {"index": index, "function": function}
    if name is not None:
        function["name"] = name
    if call_id is not None:
        piece |= {"id": call_id, "type": "function"}
    return {"tool_calls": [piece]}


@pytest.mark.parametrize(
    ("deltas", "arguments"),
    [
        pytest.param(
            [_piece(1, "a", "mail_delete", '{"id":1}'), _piece(4, "b", "mail_delete", '{"id":2}')],
            [{"id": 1}, {"id": 2}],
            marks=pytest.mark.item("calls/index-gaps"),
        ),
        pytest.param(
            [_piece(0, "a", "mail_delete", '{"id":1}')],
            [{"id": 1}],
            marks=pytest.mark.item("calls/whole-call-delta"),
        ),
        pytest.param(
            [_piece(0, "a", "mail"), _piece(0, None, "_del"), _piece(0, None, "ete", '{"id":1}')],
            [{"id": 1}],
            marks=pytest.mark.item("calls/name-in-pieces"),
        ),
        pytest.param(
            [_piece(0, "a", "mail_delete", '{"id":1}'), _piece(0, "b", "mail_delete", '{"id":2}')],
            [{"id": 1}, {"id": 2}],
            marks=pytest.mark.item("calls/shared-index"),
        ),
    ],
)
@pytest.mark.parametrize("declared", [False, True])
async def test_calls_in_odd_streams(
    deltas: list[JSONObject], arguments: list[JSONObject], declared: bool
) -> None:
    """Behind a hidden round the client gets whole calls under gapless indices."""
    rounds = play(_piece(0, "s", "tool_search", '{"queries":["storm"]}')), play(*deltas)
    theatre = stage(*rounds, settings=settings())
    said: JSONObject = {"role": "system", "content": "Use mail_delete." if declared else "Help."}
    seen = await see(theatre, request(said, USER, stream=True))
    assert seen.names == ["mail_delete"] * len(arguments)
    assert seen.arguments == arguments
    assert (b"mail_delete" in orjson.dumps(theatre.bodies[0]["tools"][0])) is declared


@pytest.mark.item("calls/name-in-pieces")
async def test_a_search_whose_name_comes_in_pieces() -> None:
    """`tool` might become a tool of the client, so it waits until it is `tool_search`."""
    pieces = _piece(0, "s", "tool"), _piece(0, None, "_search"), _piece(0, None, None, '{"q":"x"}')
    theatre = stage(play(*pieces), events("Calm.", number=2), settings=settings())
    seen = await see(theatre, request(stream=True))
    assert (seen.text, seen.calls) == ("Calm.", [])
