"""Which units may be judged, and why the others stay."""

import pytest

from proxy.triage.candidates import Wanted, find_candidates, is_ripe, newest_text
from proxy.triage.plan import Act, Plan
from proxy.triage_settings import Triage
from proxy.wire import JSONObject
from tests.triage.talk import converse, said, small, step, user

OLD = [user("One"), said("Yes"), user("Two"), said("Yes"), user("Three"), said("Yes"), user("Four")]


def _numbers(messages: list[JSONObject], settings: Triage, plan: Plan | None = None) -> list[int]:
    found = find_candidates(converse(messages), plan, settings)
    return sorted(candidate.unit.number for candidate in found.units)


def test_the_newest_turns_are_never_candidates() -> None:
    """Nor is the first, by default."""
    assert _numbers(OLD, Triage()) == [2]
    assert _numbers(OLD, small()) == [1, 2, 3]


def test_of_a_tool_loop_all_but_the_newest_steps_are_old() -> None:
    """One turn with many calls is not one protected block."""
    loop = [user("Do it"), *[m for n in range(8) for m in step(n)]]
    assert _numbers(loop, Triage()) == [2, 3, 4, 5, 6]


@pytest.mark.parametrize(("change", "reason"), [
    ({"content": "This is important"}, "pinned"),
    ({"content": "Two", "cache_control": {"type": "ephemeral"}}, "cache_control"),
])  # fmt: skip
def test_what_is_spared_has_a_reason(change: JSONObject, reason: str) -> None:
    """It is told by number."""
    messages = [*OLD[:2], {**OLD[2], **change}, *OLD[3:]]
    assert find_candidates(converse(messages), None, small()).spared[2] == reason


def test_a_clients_old_cache_mark_protects_what_is_before_it() -> None:
    """Unless the window is nearly full; marks in the newest turns move along."""
    mark = {"cache_control": {"type": "ephemeral"}}
    messages = [*OLD[:2], {**OLD[2], **mark}, *OLD[3:]]
    assert _numbers(messages, small()) == [3]
    forced = find_candidates(converse(messages), None, small(), forced=True)
    assert {c.unit.number for c in forced.units} == {1, 3}
    assert _numbers([*OLD[:-1], {**OLD[-1], **mark}], small()) == [1, 2, 3]


def test_quoted_and_recalled_parts_stay() -> None:
    """They are in use."""
    messages = [user("The pump fails when it rains"), *OLD[1:-1], user("> The pump fails when it")]
    found = find_candidates(converse(messages), None, small(), Wanted(recalled={3}))
    assert found.spared == {1: "quoted", 2: "recalled"}


def test_what_was_decided_is_not_asked_again() -> None:
    """What stayed is, after some turns."""
    talk = converse(OLD)
    links = [unit.link.hex() for unit in talk.units]
    plan = Plan("a", {links[0]: Act("drop", "", 1)}, {}, {links[1]: 4})
    assert _numbers(OLD, small(), plan) == [3]
    assert _numbers(OLD, small(ask_again_turns=1), Plan("a", {}, {}, {links[1]: 2})) == [1, 2, 3]


def test_the_largest_come_first() -> None:
    """They matter most when there is no room for all."""
    messages = [*OLD[:2], user("Two " * 50), *OLD[3:]]
    found = find_candidates(converse(messages), None, small())
    assert found.units[0].unit.number == 2
    assert found.units[0].link == found.units[0].unit.link.hex()


def test_a_short_conversation_is_not_ripe() -> None:
    """Three user turns, or a tool loop."""
    assert not is_ripe(converse(OLD[:3]), Triage())
    assert is_ripe(converse(OLD[:5]), Triage())
    assert is_ripe(converse([user("Do"), *[m for n in range(5) for m in step(n)]]), Triage())


def test_the_newest_words_are_the_users() -> None:
    """Also within a tool loop."""
    assert newest_text(converse([user("Do"), *step(1)])) == "Do"
    assert not newest_text(converse([said("x")]))
