"""Equal conversations have equal hashes, different ones do not."""

import pytest

from proxy.plan.chain import call_ids, chain_hashes, extend_chain, read_text
from proxy.wire import JSONObject

_USER: JSONObject = {"role": "user", "content": "hi"}


def _call(call_id: str) -> JSONObject:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def test_a_longer_history_has_the_shorter_ones_hashes_first() -> None:
    """Each message's hash depends on what stands before it, not on what follows."""
    short = chain_hashes([_USER])
    long = chain_hashes([_USER, {"role": "assistant", "content": "hello"}])
    assert long[0] == short[0]
    assert extend_chain(short[0], {"role": "assistant", "content": "hello"}) == long[1]


@pytest.mark.item("state/reordered-results")
def test_what_clients_rewrite_makes_no_difference() -> None:
    """Null content, outer white space, names, refusals and the order of calls do not count."""
    sent: JSONObject = {
        "role": "assistant",
        "content": None,
        "tool_calls": [_call("a"), _call("b")],
    }
    back: JSONObject = {
        "role": "assistant",
        "content": "  ",
        "refusal": None,
        "annotations": [],
        "tool_calls": [_call("b"), _call("a")],
    }
    assert chain_hashes([_USER, sent])[1] == chain_hashes([{**_USER, "name": "x"}, back])[1]


def test_text_parts_equal_their_text() -> None:
    """A client that stores content as parts is still in the same conversation."""
    parts: JSONObject = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    assert chain_hashes([parts]) == chain_hashes([_USER])


def test_different_turns_differ() -> None:
    """Text, calls, answered ids, images and order all matter."""
    histories: list[list[JSONObject]] = [
        [_USER],
        [{"role": "user", "content": "ho"}],
        [{"role": "assistant", "content": "hi"}],
        [{"role": "tool", "content": "hi", "tool_call_id": "a"}],
        [{"role": "tool", "content": "hi", "tool_call_id": "b"}],
        [{"role": "assistant", "tool_calls": [_call("a")]}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "y"}}]}],
        [_USER, _USER],
    ]
    last = [chain_hashes(history)[-1] for history in histories]
    assert len(set(last)) == len(last)


def test_the_system_prompt_does_not_count() -> None:
    """Applications put the date there, which must not end a conversation."""
    system: JSONObject = {"role": "system", "content": "Today is Monday."}
    other: JSONObject = {"role": "developer", "content": "Today is Tuesday."}
    assert chain_hashes([system, _USER])[1] == chain_hashes([other, _USER])[1]


def test_odd_content_and_calls_are_read_as_nothing() -> None:
    """Foreign JSON of any shape neither raises nor invents text."""
    assert read_text(3) == ""
    assert read_text(["a", {"text": "b"}, {"text": 3}, None]) == "a\nb"
    assert call_ids({"tool_calls": "x"}) == []
    assert call_ids({"tool_calls": [3, {"id": 4}, {"id": ""}, {"id": "a"}]}) == ["a"]
