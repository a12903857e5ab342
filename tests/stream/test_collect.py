"""One round becomes one answer, from a stream or from a JSON reply."""

import pytest

from proxy.stream.chunk import Delta
from proxy.stream.collect import Answer, Collector, read_completion, sum_usage
from proxy.wire import JSON, JSONObject
from tests.stream.transcript import TOP, opening, piece

STOP: JSONObject = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def delta(**fields: JSON) -> JSONObject:
    return TOP | {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def collect(*chunks: JSON) -> Answer:
    collector = Collector()
    for chunk in chunks:
        collector.add(chunk)
    return collector.answer()


def test_a_text_answer() -> None:
    """Role, text, reason and head; nothing is in the message that nobody said."""
    answer = collect(
        delta(role="assistant", content="", refusal=None),
        delta(content="a"),
        delta(content="b"),
        STOP,
    )
    assert answer.message == {"role": "assistant", "content": "ab"}
    assert (answer.finish_reason, answer.complete, answer.calls) == ("stop", True, [])
    assert answer.head == {"id": "chatcmpl-1", "created": 1, "model": "m"}


def test_text_beside_calls_is_kept() -> None:
    """Only empty text gives way to null, and only where there are calls."""
    called = delta(tool_calls=[opening(0, "a", "t0", "{}")])
    contents = [
        collect(*chunks).message["content"]
        for chunks in (
            [delta(content="a"), called],
            [delta(content=""), called],
            [delta(content="")],
        )
    ]
    assert contents == ["a", None, ""]


def test_the_first_role_stays() -> None:
    """Whatever a provider calls it, and however often."""
    chunks = [delta(role="model", content="a"), delta(role="assistant"), delta(role=None)]
    assert collect(*chunks).message["role"] == "model"
    assert collect(delta(content="a")).message["role"] == "assistant"


def test_an_answer_with_calls() -> None:
    """The message holds the calls as a history wants them, and no empty text beside them."""
    answer = collect(
        delta(role="assistant", content=""),
        delta(tool_calls=[opening(0, "a", "t0")]),
        delta(tool_calls=[piece(0, "{}")]),
    )
    call = {"id": "a", "type": "function", "function": {"name": "t0", "arguments": "{}"}}
    assert answer.message == {"role": "assistant", "content": None, "tool_calls": [call]}
    ((index, id_, name, arguments),) = [(c.index, c.id, c.name, c.arguments) for c in answer.calls]
    assert (index, id_, name, arguments, answer.complete) == (0, "a", "t0", "{}", False)


def test_unknown_fields_can_be_replayed() -> None:
    """Texts are joined, lists extended, of anything else the last one wins."""
    answer = collect(
        delta(reasoning_content="a", details=[{"text": "x"}], signature="S"),
        delta(
            reasoning_content="b", details=[{"text": "y"}], level=1, audio={"data": "p", "id": "q"}
        ),
        delta(content="c", level=2, audio={"data": "r"}),
    )
    assert answer.message == {
        "role": "assistant",
        "content": "c",
        "reasoning_content": "ab",
        "signature": "S",
        "details": [{"text": "x"}, {"text": "y"}],
        "level": 2,
        "audio": {"data": "pr", "id": "q"},
    }


@pytest.mark.parametrize(
    "contents",
    [
        [[{"type": "thinking"}], "a", "b"],
        [[{"type": "thinking"}], [{"type": "text", "text": "ab"}]],
    ],
)
def test_content_may_come_as_parts(contents: list[JSON]) -> None:
    """A provider that mixes parts and text gets one list of parts back."""
    answer = collect(*[delta(content=content) for content in contents])
    assert answer.message["content"] == [{"type": "thinking"}, {"type": "text", "text": "ab"}]


def test_text_before_parts_becomes_a_part() -> None:
    """Nothing of either is lost."""
    answer = collect(delta(content="a"), delta(content=[{"type": "thinking"}]))
    assert answer.message["content"] == [{"type": "text", "text": "a"}, {"type": "thinking"}]


@pytest.mark.parametrize("parts", [[], ["odd"], [{"type": "image"}]])
def test_text_after_other_parts_is_a_part_of_its_own(parts: list[JSON]) -> None:
    """Nothing is appended to what is no text."""
    answer = collect(delta(content=parts), delta(content="a"))
    assert answer.message["content"] == [*parts, {"type": "text", "text": "a"}]


@pytest.mark.parametrize(
    ("earlier", "later"), [({"a": "x"}, {"a": "y"}), ([1], {"a": "x"}), ({"a": "x"}, [1]), (1, 2)]
)
@pytest.mark.parametrize("field", ["extra", "audio"])
def test_what_cannot_grow_is_replaced(field: str, earlier: JSON, later: JSON) -> None:
    """Unknown objects and changes of kind: the last one wins; only known objects have parts."""
    joined = {"a": "xy"} if field == "audio" and later == {"a": "y"} else later
    answer = collect(delta(**{field: earlier}), delta(**{field: later}))
    assert answer.message[field] == joined


@pytest.mark.parametrize(
    "chunk",
    [
        None,
        [],
        "x",
        {},
        {"error": {}},
        {"error": None},
        {"choices": None},
        {"choices": []},
        {"choices": [None, 1]},
        {"choices": [{"index": 0}]},
        {"choices": [{"index": 0, "delta": None, "finish_reason": ""}]},
        {"choices": [{"index": [], "delta": {"content": "no"}}]},
        {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}]},
        {"usage": None, "choices": [{"delta": {"tool_calls": None}}]},
        {"usage": "x", "choices": [{"delta": {"tool_calls": [None]}}]},
    ],
)
def test_odd_chunks_change_nothing(chunk: JSON) -> None:
    """No deviation raises, ends the answer or adds to it."""
    assert collect(delta(content="a"), chunk) == collect(delta(content="a"))


def test_a_missing_index_is_the_first_choice() -> None:
    """Some servers number nothing."""
    answer = collect({"choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]})
    assert (answer.message["content"], answer.finish_reason) == ("a", "length")


def test_the_first_reason_counts() -> None:
    """A finish that is repeated on the usage chunk is no second one."""
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
    assert collect(STOP, last).finish_reason == "stop"


@pytest.mark.parametrize(
    "chunks",
    [
        [delta(content="a") | {"usage": {"total_tokens": 3}}],
        [STOP | {"usage": {"total_tokens": 3}}],
        [{"choices": [], "usage": {"total_tokens": 3}}],
        [{"usage": {"total_tokens": 3}}],
        [STOP | {"usage": {"total_tokens": 1}}, STOP | {"usage": {"total_tokens": 3}}],
        [{"usage": {"total_tokens": 3}}, {"usage": None}, {"usage": {}}],
    ],
)
def test_usage_is_read_from_any_chunk(chunks: list[JSONObject]) -> None:
    """The last one that states it wins, so a cumulative usage is not added up."""
    assert collect(*chunks).usage == {"total_tokens": 3}


def test_unknown_usage_is_none() -> None:
    """Never zero."""
    assert collect(STOP).usage is None


@pytest.mark.parametrize(
    ("chunk", "error"),
    [
        ({"error": {"message": "x"}}, {"message": "x"}),
        ({"error": "x"}, {"message": "x"}),
        ({"object": "error", "message": "x"}, {"object": "error", "message": "x"}),
    ],
)
def test_an_error_makes_an_answer_incomplete(chunk: JSONObject, error: JSONObject) -> None:
    """Even when a finish reason came with it."""
    answer = collect(STOP, chunk, delta(content="a"))
    assert (answer.error, answer.complete) == (error, False)


def test_made_ids_differ_between_rounds_of_one_response_id() -> None:
    """A provider without ids, of calls or of responses, still gives every call its own."""
    nameless = delta(tool_calls=[{"function": {"name": "t0", "arguments": "{}"}}])
    first, second = Collector("1"), Collector("2")
    first.add(nameless)
    second.add(nameless)
    assert first.answer().calls[0].id != second.answer().calls[0].id
    assert first.answer().calls == first.answer().calls


def test_a_json_reply_stays_verbatim() -> None:
    """The message is the provider's own object."""
    call = opening(0, "a", "t0", "{}") | {"extra_content": {"sig": "S"}}
    message = {"role": "assistant", "content": None, "reasoning": "r", "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = TOP | {"choices": [choice], "usage": {"total_tokens": 1}}
    answer = read_completion(body)
    assert answer.message == message
    assert answer.head == {"id": "chatcmpl-1", "created": 1, "model": "m"}
    assert answer.calls[0].raw is call
    assert (answer.finish_reason, answer.usage, answer.complete) == (
        "tool_calls",
        {"total_tokens": 1},
        True,
    )


@pytest.mark.parametrize("odd", [None, [], {"a": 1}])
def test_a_json_reply_without_calls_stays_verbatim_too(odd: JSON) -> None:
    """Whatever a provider writes for no calls."""
    message = {"role": "assistant", "content": "a", "tool_calls": odd}
    answer = read_completion({"choices": [{"message": message}]})
    assert (answer.message, answer.calls, answer.complete) == (message, [], True)


def test_an_error_beside_a_message_makes_it_incomplete() -> None:
    """A body that states both is no answer."""
    body = {"choices": [{"message": {"content": "a"}}], "error": {"message": "x"}}
    assert not read_completion(body).complete


def test_a_json_reply_without_ids_gets_them() -> None:
    """Arguments that came as an object are text in the call, and verbatim in the message."""
    raw = {"function": {"name": "t0", "arguments": {"q": 1}}}
    answer = read_completion({"choices": [{"message": {"tool_calls": [raw, raw, None]}}]})
    first, second = answer.calls
    assert first.arguments == '{"q":1}'
    assert first.id != second.id
    assert answer.message["tool_calls"] == [raw | {"id": first.id}, raw | {"id": second.id}]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": None},
        {"choices": [{"index": 0, "message": None}]},
        {"error": {"message": "x"}},
        {"usage": 3, "choices": [None]},
    ],
)
def test_a_json_reply_without_answer_is_incomplete(body: JSONObject) -> None:
    """It still reads as an answer that says nothing."""
    answer = read_completion(body)
    assert answer.message == {"role": "assistant", "content": None}
    assert (answer.calls, answer.usage, answer.complete) == ([], None, False)
    assert answer.error == body.get("error")


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        ({"a": 1}, {"a": 2}, {"a": 3}),
        ({"a": 0.5}, {"a": 1}, {"a": 1.5}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"d": {"a": 1, "b": None}}, {"d": {"a": 2, "b": 3}}, {"d": {"a": 3, "b": 3}}),
        ({"a": 1}, {"a": None}, {"a": 1}),
        ({"a": None}, {"a": 1}, {"a": 1}),
        ({"a": None}, {"a": None, "b": None}, {"a": None, "b": None}),
        ({"a": "x", "f": True}, {"a": "y", "f": True}, {"a": "y", "f": True}),
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": 1}, {"a": 1}),
        ({"a": 1}, {"a": "x"}, {"a": "x"}),
    ],
)
def test_usage_adds_up_field_by_field(
    first: JSONObject, second: JSONObject, total: JSONObject
) -> None:
    """Details too; nulls and names don't count, and nothing appears that nobody stated."""
    before = str(first)
    assert sum_usage([first, None, second]) == total
    assert str(first) == before


def test_usage_that_nobody_states_stays_unknown() -> None:
    """One statement stays as it is, none stays none."""
    assert sum_usage([]) is sum_usage([None, {}]) is None
    assert sum_usage([None, {"a": 1, "b": None}]) == {"a": 1, "b": None}


def test_the_quick_way_says_the_same() -> None:
    """Words of text chunks join those of other chunks, parts included."""
    words = Delta(role="model", content="a", reasoning="b", reasoning_content="c", refusal="d")
    words.reasoning_details = [{"text": "e"}]
    collector = Collector()
    collector.add_text(words)
    words.role = "assistant"
    collector.add_text(words)
    assert collector.answer().message == {
        "role": "model",
        "content": "aa",
        "reasoning": "bb",
        "reasoning_content": "cc",
        "refusal": "dd",
        "reasoning_details": [{"text": "e"}, {"text": "e"}],
    }
    collector.add(delta(content=[{"type": "thinking"}]))
    collector.add_text(words)
    assert collector.answer().message["content"] == [
        {"type": "text", "text": "aa"},
        {"type": "thinking"},
        {"type": "text", "text": "a"},
    ]
