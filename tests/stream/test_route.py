"""Calls go out live, whole or never."""

from collections.abc import Container

import pytest

from proxy.stream.calls import Call, CallAssembler
from proxy.stream.route import Router
from proxy.wire import JSON, JSONObject
from tests.stream.transcript import opening, piece

VISIBLE = {"t0", "t1", "tool"}
HIDDEN = ["tool_search"]


class Play:
    """One round of fragments through a router."""

    def __init__(self, visible: Container[str] = VISIBLE) -> None:
        self.router = Router()
        self.router.start_round(visible, HIDDEN)
        self.assembler = CallAssembler()

    def show(self, *fragments: JSON) -> list[JSONObject]:
        return self.router.show(self.assembler.add(list(fragments), "seed"))


def test_a_visible_call_goes_out_as_it_came() -> None:
    """Its fragments are the very same objects, from the first one on."""
    play = Play()
    first, second = opening(0, "a", "t0"), piece(0, "{}")
    assert play.show(first)[0] is first
    assert play.show(second)[0] is second


def test_nothing_of_a_hidden_call_goes_out() -> None:
    """Neither its opening nor its arguments nor its end."""
    play = Play()
    assert play.show(opening(0, "a", "tool_search")) == []
    assert play.show(piece(0, '{"q":')) == []
    assert play.show(piece(0, "1}")) == []
    assert play.router.close() == []
    assert [call.id for call in play.router.held] == ["a"]


def test_visible_calls_close_the_gaps_that_hidden_ones_leave() -> None:
    """Indices count what the client sees."""
    play = Play()
    play.show(opening(0, "a", "tool_search"))
    assert play.show(opening(1, "b", "t0")) == [opening(0, "b", "t0")]
    assert play.show(piece(0, "{}"), piece(1, "[]")) == [piece(0, "[]")]
    assert play.show(opening(2, "c", "t1", "{}")) == [opening(1, "c", "t1", "{}")]


def test_indices_go_on_in_the_next_round() -> None:
    """A stream has one numbering."""
    play = Play()
    play.show(opening(0, "a", "t0"))
    play.router.start_round(VISIBLE)
    play.assembler = CallAssembler()
    assert play.show(opening(0, "b", "t0")) == [opening(1, "b", "t0")]


def test_a_name_that_may_go_on_waits() -> None:
    """`tool` may become `tool_search`, until arguments tell."""
    play = Play()
    assert play.show(opening(0, "a", "tool")) == []
    assert play.show({"index": 0, "function": {"name": "_search"}}) == []
    assert play.show(piece(0, "{}")) == []
    assert [call.name for call in play.router.held] == ["tool_search"]


def test_arguments_complete_a_name() -> None:
    """What waited goes out as one opening."""
    play = Play()
    play.show(opening(0, "a", "tool"))
    assert play.show(piece(0, "{")) == [opening(0, "a", "tool", "{")]
    assert play.show(piece(0, "}")) == [piece(0, "}")]


def test_nothing_goes_out_twice_when_a_chunk_says_more_of_a_call() -> None:
    """An opening that was renumbered holds the arguments that came with it."""
    play = Play()
    play.show(opening(0, "a", "tool_search"))
    assert play.show(opening(1, "b", "t0"), piece(1, "{}")) == [opening(0, "b", "t0", "{}")]
    assert play.show(piece(1, " ")) == [piece(0, " ")]


def test_another_call_completes_a_name() -> None:
    """The opening that waited goes out in front of the new call."""
    play = Play()
    play.show(opening(0, "a", "tool"))
    assert play.show(opening(1, "b", "t0")) == [opening(0, "a", "tool"), opening(1, "b", "t0")]


def test_the_end_of_the_round_completes_a_name() -> None:
    """A call without arguments is not lost."""
    play = Play()
    play.show(opening(0, "a", "tool"))
    assert play.router.close() == [opening(0, "a", "tool")]
    assert play.router.close() == []


def test_a_call_that_waits_is_gone_with_its_round() -> None:
    """What a hidden round left open never shows up in the next one."""
    play = Play()
    play.show(opening(0, "a", "tool"))
    play.router.start_round(VISIBLE)
    play.assembler = CallAssembler()
    assert play.show(opening(0, "b", "t0")) == [opening(0, "b", "t0")]
    assert play.router.close() == []


def test_a_set_that_cannot_be_listed_makes_every_name_wait() -> None:
    """Who only answers whether a name is visible cannot tell which names go on."""

    class Names:
        def __contains__(self, name: object) -> bool:
            return name == "t0"

    play = Play(Names())
    assert play.show(opening(0, "a", "t0")) == []
    assert play.show(piece(0, "{}")) == [opening(0, "a", "t0", "{}")]


@pytest.mark.parametrize(
    "further",
    [
        {"function": {"arguments": "{}"}},
        {"index": 0, "id": "a", "function": {"arguments": "{}"}},
        {"index": 0, "id": "null", "type": "function", "function": {"arguments": "{}"}},
        {"index": 0, "function": {"name": "t0", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": {}}},
    ],
)
def test_clients_get_only_what_they_may_append(further: JSONObject) -> None:
    """Repeated ids and names would be appended to themselves; objects are no text."""
    play = Play()
    play.show(opening(0, "a", "t0"))
    assert play.show(further) == [piece(0, "{}")]


@pytest.mark.parametrize("empty", [{"id": None}, {"id": ""}])
def test_empty_ids_are_left_alone(empty: JSONObject) -> None:
    """They do no harm, so the event can keep its bytes."""
    play = Play()
    play.show(opening(0, "a", "t0"))
    further = piece(0, "{}") | empty
    assert play.show(further)[0] is further


def test_other_fields_of_a_fragment_go_along() -> None:
    """Signatures reach the client, whether the opening went at once or had to wait."""
    sig = {"extra_content": {"google": {"thought_signature": "S"}}}
    play = Play()
    assert play.show({"function": {"name": "t0", "arguments": {}}} | sig)[0].items() >= sig.items()
    assert play.show({"index": 0, "id": "null"} | sig) == [{"index": 0} | sig]
    play.show(opening(1, "b", "tool") | sig)
    assert play.show(piece(1, "{}")) == [opening(1, "b", "tool", "{}") | sig]


def test_an_opening_lacks_nothing_that_the_protocol_wants() -> None:
    """A call without index, id and type gets them, the id the same as in the answer."""
    function = {"name": "t0", "arguments": "{}"}
    for fragment in ({"function": function}, {"index": 0, "function": function}):
        play = Play()
        (shown,) = play.show(fragment)
        assert shown == opening(0, play.assembler.calls[0].fix_id(), "t0", "{}")


def test_custom_calls_are_renumbered_too() -> None:
    """Their input is appended like arguments."""
    play = Play()
    play.show(opening(0, "a", "tool_search"))
    first = {"index": 1, "id": "b", "type": "custom", "custom": {"name": "t0", "input": "x"}}
    assert play.show(first) == [first | {"index": 0}]
    assert play.show({"index": 1, "custom": {"input": "y"}}) == [
        {"index": 0, "custom": {"input": "y"}}
    ]


def test_a_released_call_is_whole() -> None:
    """Name and arguments may have been corrected; the provider's other fields stay."""
    play = Play()
    raw = opening(5, "x", "wrapper", "{ }") | {"sig": "S"}
    assert play.router.release(Call(0, "a", "t0", "{}", raw)) == opening(0, "a", "t0", "{}") | {
        "sig": "S"
    }
    assert play.router.release(Call(0, "c", "t0", "", {})) == opening(1, "c", "t0")
    custom = {"type": "custom", "custom": {"name": "c", "input": "i"}}
    assert play.router.release(Call(1, "b", "c", "i", custom)) == {"index": 2, "id": "b"} | custom
