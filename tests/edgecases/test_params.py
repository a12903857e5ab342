"""The parameter matrix: what a client may send beside its tools, row by row."""

import orjson
import pytest

from proxy.wire import JSON, JSONObject
from tests.edgecases.scene import USER, names, play, predicting, result, see, settings, user
from tests.tools.samples import city_tools, function
from tests.turns import call, chat_request, completion, events, request, search, stage

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
SENT = call("mail_send", {"to": "Ann"})
SEARCH = {"type": "function", "function": {"name": "tool_search"}}
GRAMMAR: JSONObject = {
    "type": "custom",
    "custom": {"name": "grammar", "format": {"type": "grammar", "grammar": {"syntax": "lark"}}},
}
VENDOR: JSONObject = {"type": "web_search_preview", "user_location": None}


def _named(name: str) -> JSONObject:
    return {"type": "function", "function": {"name": name}}


def _allowed(*tools: str, mode: str = "auto") -> JSONObject:
    inner = {"mode": mode, "tools": [_named(name) for name in tools]}
    return {"type": "allowed_tools", "allowed_tools": inner}


@pytest.mark.item("params/choice-none")
async def test_none() -> None:
    """No search, no prediction; tools that were called stay declared, for their history."""
    before: JSONObject = {"role": "assistant", "content": None, "tool_calls": [SENT]}
    messages = USER, before, result(), user("weather forecast please")
    theatre = stage(completion("Hi"), completion("Hi"), settings=predicting())
    await see(theatre, request(*messages, tool_choice="none"))
    assert names(theatre.bodies[0]) == ["mail_send"]
    assert theatre.bodies[0]["tool_choice"] == "none"
    assert theatre.bodies[0]["messages"] == list(messages)
    await see(theatre, request(user("weather forecast please"), tool_choice="none"))
    assert not {"tools", "tool_choice"} & theatre.bodies[1].keys()


@pytest.mark.parametrize("sent", [{}, {"tool_choice": "auto"}, {"tool_choice": None}])
@pytest.mark.item("params/choice-auto")
async def test_auto(sent: JSONObject) -> None:
    """The ordinary road; the choice goes up as it came, or stays absent."""
    theatre = stage(completion("Hi"), settings=settings())
    await see(theatre, request(**sent))
    assert names(theatre.bodies[0]) == ["tool_search"]
    assert {k: v for k, v in theatre.bodies[0].items() if k == "tool_choice"} == sent


@both
@pytest.mark.item("params/choice-required")
async def test_required(stream: bool) -> None:
    """A search may come first; after it the model can only call what was found."""
    make = events if stream else completion
    theatre = stage(make(None, [search("storm")]), make(None, [SENT], number=2))
    seen = await see(theatre, request(stream=stream, tool_choice="required"))
    assert [names(body) for body in theatre.bodies] == [["tool_search"], ["weather_alerts"]]
    assert [body["tool_choice"] for body in theatre.bodies] == ["required", "required"]
    assert seen.calls == [SENT]


@pytest.mark.item("params/choice-required")
async def test_required_predicts_where_no_tool_is_needed() -> None:
    """A client that wants a call gets tools; what older messages brought stays as it was."""
    thanks = user("thanks, have a good day")
    hello: JSONObject = {"role": "assistant", "content": "Hello."}
    theatre = stage(*(completion("Hello.") for _ in range(3)), settings=predicting())
    await see(theatre, request(thanks))
    await see(theatre, request(thanks, tool_choice="required"))
    await see(theatre, request(thanks, hello, user("storm"), tool_choice="required"))
    plain, forced, later = (names(body) for body in theatre.bodies)
    assert plain == ["tool_search"]
    assert len(forced) > 1
    assert "weather_alerts" in later
    assert not set(forced[1:]) & set(later)


@pytest.mark.item("params/choice-required-nothing-found")
async def test_required_without_a_find() -> None:
    """Kept tools are no reason to stop searching; in the end all of them are offered."""
    rounds = [completion(None, [search(t, t)], number=n) for n, t in enumerate(("qqq", "zzz"))]
    theatre = stage(*rounds, completion(None, [SENT], number=3), settings=settings(pin=["mail_d*"]))
    seen = await see(theatre, request(tool_choice="required"))
    assert names(theatre.bodies[1]) == ["mail_delete", "tool_search"]
    assert len(names(theatre.bodies[2])) == 6
    assert seen.calls == [SENT]


@pytest.mark.item("params/choice-named")
async def test_named() -> None:
    """That tool alone, whole, without a search; only what was called before stays beside it."""
    before: JSONObject = {"role": "assistant", "content": None, "tool_calls": [SENT]}
    choice = _named("weather_now")
    theatre = stage(completion("Hi"), completion("Hi"), settings=predicting())
    await see(theatre, request(user("storm?"), tool_choice=choice))
    await see(theatre, request(USER, before, result(), user("storm?"), tool_choice=choice))
    assert [names(body) for body in theatre.bodies] == [
        ["weather_now"],
        ["weather_now", "mail_send"],
    ]
    assert all(body["tool_choice"] == choice for body in theatre.bodies)


@both
@pytest.mark.item("params/choice-search")
async def test_named_search(stream: bool) -> None:
    """It is forced once; then the model is free, or it would search for ever."""
    make = events if stream else completion
    theatre = stage(make(None, [search("storm")]), make("Calm.", number=2), settings=settings())
    seen = await see(theatre, request(stream=stream, tool_choice=SEARCH))
    assert [body["tool_choice"] for body in theatre.bodies] == [SEARCH, "auto"]
    assert (seen.text, seen.calls) == ("Calm.", [])


@pytest.mark.item("params/choice-allowed-few")
async def test_few_allowed() -> None:
    """What fits is sent whole, and nothing else; the choice is the client's own."""
    choice = _allowed("weather_now", "mail_send")
    theatre = stage(completion("Hi"), settings=predicting())
    await see(theatre, request(user("storm?"), tool_choice=choice))
    assert names(theatre.bodies[0]) == ["weather_now", "mail_send"]
    assert theatre.bodies[0]["tool_choice"] == choice
    plan = await theatre.turn.explain(chat_request(orjson.dumps(request(tool_choice=choice))))
    reasons = {decision["tool"]: decision["reason"] for decision in plan["decisions"]}
    assert (reasons["mail_send"], reasons["mail_delete"]) == ("allowed", "not allowed")


@pytest.mark.parametrize(
    ("mode", "searching"),
    [
        pytest.param("auto", True, marks=pytest.mark.item("params/choice-allowed-many")),
        pytest.param("required", False, marks=pytest.mark.item("params/choice-allowed-required")),
    ],
)
async def test_many_allowed(mode: str, searching: bool) -> None:
    """They are listed and searched, no others; upstream the choice names what is declared."""
    choice = _allowed("weather_now", "weather_alerts", "mail_send", mode=mode)
    rounds = completion(None, [search("storm mail delete")]), completion(None, [SENT], number=2)
    theatre = stage(*rounds, settings=settings(eager_chars=0))
    seen = await see(theatre, request(tool_choice=choice))
    first, second = theatre.bodies
    assert "delete" not in orjson.dumps(first["tools"]).decode()
    assert first["tool_choice"] == _allowed("tool_search", mode=mode)
    found = set(names(second))
    assert ("tool_search" in found) is searching
    assert found - {"tool_search"} <= {"weather_now", "weather_alerts", "mail_send"}
    named = {tool["function"]["name"] for tool in second["tool_choice"]["allowed_tools"]["tools"]}
    assert named == found
    assert second["tool_choice"]["allowed_tools"]["mode"] == mode
    assert seen.calls == [SENT]


@both
@pytest.mark.item("params/choice-allowed-many")
async def test_a_call_that_is_not_allowed(stream: bool) -> None:
    """The model hears that there is no such tool; the client never gets the call."""
    make = events if stream else completion
    wrong = call("mail_delete", {"id": 1})
    theatre = stage(
        make(None, [wrong]), make(None, [SENT], number=2), settings=settings(eager_chars=0)
    )
    choice = _allowed("weather_now", "weather_alerts", "mail_send")
    seen = await see(theatre, request(stream=stream, tool_choice=choice))
    assert seen.calls == [SENT]


@both
@pytest.mark.item("params/choice-custom", "params/custom-tools")
async def test_a_named_custom_tool(stream: bool) -> None:
    """It goes up as it is, its call comes down as it is."""
    choice: JSONObject = {"type": "custom", "custom": {"name": "grammar"}}
    made = {"id": "c1", "type": "custom", "custom": {"name": "grammar", "input": "a > b"}}
    piece: JSONObject = {"role": "assistant", "tool_calls": [{"index": 0, **made}]}
    theatre = stage(play(piece) if stream else completion(None, [made]), settings=settings())
    tools = [*city_tools(), GRAMMAR]
    body = request(stream=stream, tool_choice=choice)
    raw = (await see(theatre, {**body, "tools": tools})).raw if not stream else b""
    if stream:
        reply = await theatre.chat({**body, "tools": tools})
        assert not isinstance(reply.body, bytes)
        raw = b"".join([chunk async for chunk in reply.body])
    assert b'"input":"a > b"' in raw
    assert theatre.bodies[0]["tools"] == [GRAMMAR]
    assert theatre.bodies[0]["tool_choice"] == choice


@pytest.mark.item("params/custom-tools", "reported/deferred-custom")
async def test_custom_and_vendor_tools() -> None:
    """They are never deferred and keep their places in front of the search tool."""
    theatre = stage(completion("Hi"), settings=settings())
    await see(theatre, {**request(), "tools": [VENDOR, *city_tools(), GRAMMAR]})
    assert theatre.bodies[0]["tools"][:2] == [VENDOR, GRAMMAR]
    assert theatre.bodies[0]["tools"][2]["function"]["name"] == "tool_search"
    assert len(theatre.bodies[0]["tools"]) == 3


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            {"tool_choice": _named("nobody")}, marks=pytest.mark.item("params/choice-unknown")
        ),
        pytest.param(
            {"tool_choice": {"type": "custom", "custom": {"name": "nobody"}}},
            marks=pytest.mark.item("params/choice-unknown", "params/choice-custom"),
        ),
        pytest.param(
            {"tool_choice": _allowed("weather_now", "nobody")},
            marks=pytest.mark.item("params/choice-unknown"),
        ),
        pytest.param({"tool_choice": "any"}, marks=pytest.mark.item("params/choice-unknown")),
        pytest.param({"n": 2}, marks=pytest.mark.item("params/several-choices")),
        pytest.param({"logprobs": True}, marks=pytest.mark.item("params/logprobs")),
        pytest.param({"best_of": 3}, marks=pytest.mark.item("params/best-of")),
        pytest.param({"store": True}, marks=pytest.mark.item("params/store")),
        pytest.param({"functions": [{"name": "f"}]}, marks=pytest.mark.item("params/functions")),
        pytest.param({"function_call": "auto"}, marks=pytest.mark.item("params/functions")),
    ],
)
async def test_what_hidden_rounds_cannot_serve(fields: JSONObject) -> None:
    """It goes up to the byte, and what comes back is the upstream's own word."""
    theatre = stage(completion("Hi"), settings=predicting())
    raw = orjson.dumps(request(**fields))
    await see(theatre, raw)
    assert theatre.transport.sent[0].body == raw


@pytest.mark.parametrize("fields", [{"n": 1}, {"best_of": 1}, {"logprobs": False}, {"store": None}])
@pytest.mark.item("params/several-choices", "params/logprobs", "params/best-of", "params/store")
async def test_the_same_switched_off_is_nothing(fields: JSONObject) -> None:
    """Clients that spell out defaults get deferral all the same."""
    theatre = stage(completion("Hi"), settings=settings())
    await see(theatre, request(**fields))
    assert names(theatre.bodies[0]) == ["tool_search"]
    assert {key: theatre.bodies[0][key] for key in fields} == fields


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(
            {"role": "assistant", "content": "{"}, marks=pytest.mark.item("params/prefill")
        ),
        pytest.param(
            {"role": "function", "name": "f", "content": "x"},
            marks=pytest.mark.item("params/functions"),
        ),
    ],
)
async def test_histories_that_hidden_rounds_cannot_continue(last: JSONObject) -> None:
    """An answer that was begun, and calls in the form before tools, pass untouched."""
    theatre = stage(completion("Hi"), settings=settings())
    raw = orjson.dumps(request(USER, last))
    await see(theatre, raw)
    assert theatre.transport.sent[0].body == raw


@both
@pytest.mark.item("params/parallel-false")
async def test_single_calls(stream: bool) -> None:
    """A call beside a search waits: the search is done first, then the call is made again."""
    make = events if stream else completion
    again = call("mail_send", {"to": "Ann"}, "c2")
    rounds = make(None, [search("storm"), SENT]), make(None, [again], number=2)
    theatre = stage(*rounds, settings=settings())
    seen = await see(theatre, request(stream=stream, parallel_tool_calls=False))
    assert seen.calls == [again]
    assert [made["id"] for made in theatre.bodies[1]["messages"][-2]["tool_calls"]] == ["s1"]
    assert all(body["parallel_tool_calls"] is False for body in theatre.bodies)


@pytest.mark.parametrize("delivery", ["append", "frozen"])
@pytest.mark.item("params/strict")
async def test_strict_tools(delivery: str) -> None:
    """They go up as written; our own tools are not strict, so no upstream refuses them."""
    strict = function("exact", "Exact.", a={"type": "integer"})
    strict["function"]["strict"] = True
    rounds = completion(None, [search("select:exact")]), completion("Hi", number=2)
    theatre = stage(*rounds, settings=settings(delivery=delivery))
    await see(theatre, {**request(), "tools": [*city_tools(), strict]})
    last = theatre.bodies[1]["tools"]
    assert (strict in last) is (delivery == "append")
    ours = [tool for tool in last if tool["function"]["name"] in ("tool_search", "call_tool")]
    assert not any("strict" in tool["function"] for tool in ours)


@both
@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
@pytest.mark.item("params/response-format")
async def test_replies_in_json(kind: str, stream: bool) -> None:
    """No word of a hidden round stands before the JSON; the wish goes up in every round."""
    make = events if stream else completion
    wanted: JSONObject = {"type": kind}
    rounds = make("I will look.", [search("storm")]), make('{"a":1}', number=2)
    theatre = stage(*rounds, settings=settings())
    seen = await see(theatre, request(stream=stream, response_format=wanted))
    assert orjson.loads(seen.text) == {"a": 1}
    assert [body["response_format"] for body in theatre.bodies] == [wanted, wanted]


@both
@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
@pytest.mark.item("params/max-tokens")
async def test_a_limit_counts_what_the_client_saw(field: str, stream: bool) -> None:
    """Text of a hidden round is part of the answer, so the next round has less to say."""
    make = events if stream else completion
    rounds = make("word " * 40, [search("storm")]), make("Calm.", number=2)
    theatre = stage(*rounds, settings=settings())
    await see(theatre, request(stream=stream, **{field: 100}))
    first, second = (body[field] for body in theatre.bodies)
    assert first == 100
    assert 30 <= second <= 70


@pytest.mark.parametrize(
    ("text", "fields"), [(None, {}), ("word " * 40, {"response_format": {"type": "json_object"}})]
)
@pytest.mark.item("params/max-tokens")
async def test_a_limit_does_not_count_what_stays_hidden(
    text: str | None, fields: JSONObject
) -> None:
    """A search, or text that is held back, takes nothing from the answer."""
    rounds = completion(text, [search("storm")]), completion("Calm.", number=2)
    theatre = stage(*rounds, settings=settings())
    await see(theatre, request(max_tokens=100, **fields))
    assert [body["max_tokens"] for body in theatre.bodies] == [100, 100]


@pytest.mark.parametrize("limit", ["100", 100.5, True, None])
@pytest.mark.item("params/max-tokens")
async def test_a_limit_that_is_no_number(limit: JSON) -> None:
    """It is the upstream's to refuse, so it goes up as it came."""
    rounds = completion("word " * 40, [search("storm")]), completion("Calm.", number=2)
    theatre = stage(*rounds, settings=settings())
    await see(theatre, request(max_tokens=limit))
    assert [body["max_tokens"] for body in theatre.bodies] == [limit, limit]


@both
@pytest.mark.item("params/max-tokens-one")
async def test_a_limit_of_one(stream: bool) -> None:
    """A search does not fit in one token: the answer ends by length, without a call of ours."""
    half = search("storm")
    half["function"]["arguments"] = '{"'
    said = (
        play({"role": "assistant", "tool_calls": [{"index": 0, **half}]}, reason="length")
        if stream
        else completion(None, [half], reason="length")
    )
    theatre = stage(said, settings=settings())
    seen = await see(theatre, request(stream=stream, max_tokens=1))
    assert (seen.text, seen.calls, seen.reason) == ("", [], "length")
    assert len(theatre.bodies) == 1


@both
@pytest.mark.item("params/copied", "params/no-stream")
async def test_what_is_copied(stream: bool) -> None:
    """Every round has the client's own parameters, known to us or not, and states `stream`."""
    fields: dict[str, JSON] = {
        "stop": ["\n\n"],
        "seed": 7,
        "user": "u",
        "metadata": {"a": "b"},
        "temperature": 0.0,
        "logit_bias": {"50256": -100},
        "x_vendor": None,
    }
    make = events if stream else completion
    rounds = make(None, [search("storm")]), make("Calm.", number=2)
    theatre = stage(*rounds, settings=settings())
    await see(theatre, request(stream=stream, **fields))
    for body in theatre.bodies:
        assert {key: body[key] for key in fields} == fields
        assert body["stream"] is stream


@pytest.mark.item("params/no-stream")
async def test_one_json_says_what_the_stream_says() -> None:
    """Text, calls, reason and usage are the same."""
    replies = []
    for stream in (False, True):
        make = events if stream else completion
        rounds = make("Look:", [search("storm")]), make("So.", [SENT], number=2)
        options = {"stream_options": {"include_usage": True}} if stream else {}
        replies.append(await see(stage(*rounds), request(stream=stream, **options)))
    one, other = replies
    assert (one.text, one.calls, one.reason) == (other.text, other.calls, other.reason)
    assert one.usage == other.usage
