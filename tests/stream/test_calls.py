"""Tool calls are put together from every kind of fragment that providers send."""

import pytest

from proxy.stream.calls import CallAssembler, extend, join_text, made_id
from proxy.wire import JSON, JSONObject
from tests.stream.transcript import opening, piece


def assemble(*chunks: JSON) -> list[tuple[str, str, str]]:
    """Id, name and arguments of the calls in these `tool_calls` lists."""
    assembler = CallAssembler()
    for fragments in chunks:
        assembler.add(fragments, "seed")
    return [(call.id, call.name, call.arguments) for call in assembler.calls]


def function(name: JSON = None, arguments: JSON = None, **more: JSON) -> JSONObject:
    return {"function": {"name": name, "arguments": arguments}} | more


def test_interleaved_fragments_find_their_calls() -> None:
    """Parallel calls are told apart by their index."""
    assert assemble(
        [opening(0, "a", "t0")],
        [opening(1, "b", "t1"), piece(0, '{"q":')],
        [piece(1, "{}"), piece(0, "1}")],
    ) == [("a", "t0", '{"q":1}'), ("b", "t1", "{}")]


@pytest.mark.parametrize("bogus", ["", "null", None])
def test_ids_on_continuations_mean_nothing(bogus: str | None) -> None:
    """Empty, null and the word "null" are no ids."""
    further = piece(0, "{}") | {"id": bogus}
    assert assemble([opening(0, "a", "t0")], [further]) == [("a", "t0", "{}")]


@pytest.mark.item("calls/shared-index")
def test_two_ids_under_one_index_are_two_calls() -> None:
    """Whole calls under one index, and fragments that go back to the first id."""
    assert assemble([opening(0, "a", "t0", '{"q":1}')], [opening(0, "b", "t0", '{"q":2}')]) == [
        ("a", "t0", '{"q":1}'),
        ("b", "t0", '{"q":2}'),
    ]
    assert assemble(
        [opening(0, "a", "t0")],
        [opening(0, "b", "t1")],
        [piece(0, "{}") | {"id": "a"}],
        [piece(0, "{ }") | {"id": "b"}],
    ) == [("a", "t0", "{}"), ("b", "t1", "{ }")]


def test_a_new_id_without_a_name_continues_a_call() -> None:
    """A provider that makes up an id per fragment still sends one call."""
    further = piece(0, "{}") | {"id": "b"}
    assert assemble([opening(0, "a", "t0")], [further]) == [("a", "t0", "{}")]


@pytest.mark.parametrize(
    "late", [piece(0, "") | {"id": "a"}, opening(0, "a", "t0"), {"index": 0, "id": "a"}]
)
def test_an_id_may_come_late(late: JSONObject) -> None:
    """After the name, with it once more, or with nothing else."""
    fragments = [[function("t0", index=0)], [late], [piece(0, "{}")]]
    assert assemble(*fragments) == [("a", "t0", "{}")]


def test_a_name_may_come_late() -> None:
    """A new id alone opens a call; what follows without id belongs to it."""
    first, second = opening(0, "a", "t0", "{}"), {"index": 0, "id": "b"}
    assert assemble([first], [second], [function("t1", "{}", index=0)]) == [
        ("a", "t0", "{}"),
        ("b", "t1", "{}"),
    ]


def test_a_missing_index_goes_by_id_or_by_order() -> None:
    """Known ids find their call; without one, fragments belong to the latest call."""
    assert assemble(
        [function("t0", "", id="a")],
        [function(None, "{", id="a")],
        [function("t1", "", id="b")],
        [function(None, "{}")],
        [function(None, "}", id="a")],
        [piece(1, " ")],
    ) == [("a", "t0", "{}"), ("b", "t1", "{} ")]
    assert assemble(
        [function("t0", "{}")], [function("t1", "", id="a")], [function(None, "[]")]
    ) == [
        ("", "t0", "{}"),
        ("a", "t1", "[]"),
    ]


def test_whole_calls_without_index_and_id_are_told_apart() -> None:
    """By name, by whole arguments before them, or by standing in one list."""
    same = function("t0", '{"q":1}')
    assert assemble([function("t0", "{}"), function("t1", "{}")]) == [
        ("", "t0", "{}"),
        ("", "t1", "{}"),
    ]
    assert assemble([same], [same]) == [("", "t0", '{"q":1}')] * 2
    assert assemble([function("t0", ""), function("t1", "")]) == [("", "t0", ""), ("", "t1", "")]
    for id_ in ("", "a"):
        assert assemble([function("t0", "{")], [function("t1", "{}", id=id_)]) == [
            ("", "t0", "{"),
            (id_, "t1", "{}"),
        ]
    custom = {"custom": {"name": "t0", "input": "select 1"}}
    assert assemble([custom, custom]) == [("", "t0", "select 1")] * 2


@pytest.mark.item("calls/name-in-pieces")
@pytest.mark.parametrize(
    "names",
    [
        ["tool_", "search"],
        ["tool_search", "tool_search"],
        ["tool_", "tool_search"],
        ["tool_search", ""],
    ],
)
def test_names_arrive_in_pieces_or_again(names: list[str]) -> None:
    """Pieces are joined, repetitions and cumulative names are not."""
    fragments = [[function(name, "", index=0, id="a")] for name in names]
    assert assemble(*fragments, [piece(0, "{}")]) == [("a", "tool_search", "{}")]


def test_a_name_in_front_of_every_piece_is_one_call() -> None:
    """Repeating the name does not open another call while the arguments go on."""
    assert assemble(
        [function("t0", '{"q"', index=0, id="a")],
        [function("t0", ":1", index=0)],
        [function("t0", "}", index=0)],
        [function("t0", "", index=0)],
        [function("t0", " ", index=0, id="a")],
    ) == [("a", "t0", '{"q":1} ')]


@pytest.mark.item("calls/duplicate-ids")
def test_another_name_under_the_same_id_is_another_call() -> None:
    """Duplicate ids of parallel calls do not merge them, half a call is never left."""
    assert assemble([opening(0, "a", "t0", "{}")], [opening(0, "a", "t1", "{ }")]) == [
        ("a", "t0", "{}"),
        ("a", "t1", "{ }"),
    ]
    assert assemble([opening(0, "a", "t0", "{")], [opening(0, "a", "t1", "}")]) == [
        ("a", "t0", "{}")
    ]


@pytest.mark.parametrize(
    ("arguments", "text"), [({"q": "ü"}, '{"q":"ü"}'), (None, ""), ([1], "[1]"), ("", "")]
)
def test_arguments_become_text(arguments: JSON, text: str) -> None:
    """Objects are spelled out, null is nothing."""
    assert assemble([function("t0", arguments, index=0, id="a")]) == [("a", "t0", text)]


@pytest.mark.parametrize(
    "fragments",
    [
        None,
        {},
        [None, 1, "x"],
        [{"function": "x"}],
        [{"index": "0", "id": 7, "type": 3}],
        [{"function": {"name": 5, "arguments": None}}],
    ],
)
def test_broken_fragments_do_no_harm(fragments: JSON) -> None:
    """Whatever stands in `tool_calls`, nothing raises and nothing is invented."""
    assembler = CallAssembler()
    assembler.add(fragments, "seed")
    nothing = {"name": "", "arguments": ""}
    assert all(call.object()["function"] == nothing for call in assembler.calls)
    assert all(call.type == "function" for call in assembler.calls)


def test_a_history_gets_the_call_as_the_provider_meant_it() -> None:
    """Signatures and other fields stay, the type is added, index is not part of a message."""
    assembler = CallAssembler()
    signature = {"google": {"thought_signature": "SIG"}}
    first = {"id": "a", "function": {"name": "t0", "arguments": "{}"}, "extra_content": signature}
    ((call, _),) = assembler.add([first], "")
    assembler.add([{"id": "a", "extra_content": None}], "")
    assert call.object() == {
        "id": "a",
        "type": "function",
        "function": {"name": "t0", "arguments": "{}"},
        "extra_content": signature,
    }


def test_custom_tools_are_calls_too() -> None:
    """Their input is text that takes the place of arguments."""
    assembler = CallAssembler()
    custom = {"name": "sql", "input": "select "}
    assembler.add([{"index": 0, "id": "a", "custom": custom}], "")
    assembler.add([{"index": 0, "custom": {"input": "1"}}], "")
    (call,) = assembler.calls
    assert call.object() == {
        "id": "a",
        "type": "custom",
        "custom": {"name": "sql", "input": "select 1"},
    }


@pytest.mark.item("calls/missing-ids")
def test_a_call_without_id_gets_a_lasting_one() -> None:
    """The id depends on the seed and the position only, so it never changes between looks."""
    assembler = CallAssembler()
    assembler.add([function("t0", "{}"), function("t0", "{}")], "seed")
    first, second = (call.fix_id() for call in assembler.calls)
    assert first == made_id("seed/0", "t0") == assembler.calls[0].fix_id()
    assert first != second


def test_fields_in_parts_grow_by_their_kind() -> None:
    """Texts are appended, lists extended, of anything else the last one wins."""
    assert extend("a", "b") == "ab"
    assert extend([1], [2]) == [1, 2]
    assert extend({"a": 1}, {"b": 2}) == {"b": 2}
    assert extend(None, "a") == extend([1], "a") == extend({}, "a") == "a"
    assert extend("a", [1]) == [1]


def test_halves_of_an_emoji_are_put_together() -> None:
    """Some providers cut between surrogates; a lone half becomes a replacement character."""
    assert join_text(["a\ud83c", "\udf0d"]) == "a🌍"
    assert join_text(["\ud83c", "b"]) == "\ufffdb"
