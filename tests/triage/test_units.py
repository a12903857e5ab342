"""Units and hashes: what makes two histories the same one."""

import pytest

from proxy.wire import JSONObject
from tests.triage.talk import converse, said, step, user


def test_a_turn_is_a_head_its_steps_and_a_reply() -> None:
    """Calls stay with their results; consecutive user messages are one head."""
    talk = converse([
        {"role": "system", "content": "Be brief."},
        user("One"), user("more"), *step(1, calls=2), *step(2), said("Done."), user("Two"),
    ])  # fmt: skip
    assert [unit.kind for unit in talk.units] == ["head", "step", "step", "reply", "head"]
    assert [unit.positions for unit in talk.units] == [(1, 2), (3, 4, 5), (6, 7), (8,), (9,)]
    assert [unit.number for unit in talk.units] == [1, 2, 3, 4, 5]
    assert talk.turns == 2
    assert not talk.units[-1].complete


def test_a_plain_answer_belongs_to_its_question() -> None:
    """A turn without tools is one unit."""
    talk = converse([user("One"), said("Yes."), user("Two")])
    assert [unit.positions for unit in talk.units] == [(0, 1), (2,)]


@pytest.mark.parametrize("change", [
    {"content": "  One\r\n"},
    {"content": [{"type": "text", "text": "One"}]},
    {"name": "me"},
    {"cache_control": {"type": "ephemeral"}},
])  # fmt: skip
def test_what_clients_change_makes_no_difference(change: JSONObject) -> None:
    """White space, the form of the content, marks."""
    assert converse([{**user("One"), **change}]).head == converse([user("One")]).head


def test_ids_and_the_order_of_results_make_no_difference() -> None:
    """Parallel results come in any order, and clients renumber calls."""
    call, first, second = step(1, calls=2)
    again = step(1, calls=2)
    for made, result in zip(again[0]["tool_calls"], again[1:], strict=True):
        made["id"] = result["tool_call_id"] = made["id"].replace("c", "other")
    for result, same in zip(again[1:], (first, second), strict=True):
        result["content"] = same["content"]
    straight = converse([user("One"), call, first, second])
    assert converse([user("One"), call, second, first]).head == straight.head
    assert converse([user("One"), *again]).head == straight.head


def test_reasoning_and_the_system_prompt_make_no_difference() -> None:
    """Applications put dates there, and clients drop reasoning."""
    plain = [user("One"), said("Yes.")]
    blocks = [{"type": "thinking", "signature": "abcdefgh"}]
    dated = [
        {"role": "system", "content": "Monday"},
        user("One"),
        said("Yes.", thinking_blocks=blocks),
    ]
    assert converse(plain).head == converse(dated).head


@pytest.mark.parametrize("other", [
    [user("One!")], [said("One")], [user("One"), said("Yes.")],
    [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/b"}}]}],
])  # fmt: skip
def test_another_word_is_another_history(other: list[JSONObject]) -> None:
    """As is another role, a longer one, or a picture."""
    assert converse(other).head != converse([user("One")]).head


def test_a_pictures_query_expires() -> None:
    """Signed links are made anew for the same picture."""

    def look(query: str) -> list[JSONObject]:
        url = {"url": f"http://a/b.png?{query}"}
        return [{"role": "user", "content": [{"type": "image_url", "image_url": url}]}]

    assert converse(look("sig=1")).head == converse(look("sig=2")).head


def test_users_are_apart() -> None:
    """The same words of another user are another history."""
    assert converse([user("One")], "ann").head != converse([user("One")], "bob").head


def test_unanswered_calls_and_stray_results_are_never_complete() -> None:
    """They are the client's affair and stay as they are."""
    call, result = step(1)
    assert not converse([user("One"), call]).units[-1].complete
    assert not converse([user("One"), result, user("Two")]).units[0].complete
    assert not converse([user("One"), call, result, result]).units[-1].complete
