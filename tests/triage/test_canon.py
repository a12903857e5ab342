"""What is known of one message."""

import orjson
import pytest

from proxy.triage.canon import read_fact
from proxy.wire import JSONObject
from tests.triage.talk import said, step, user


def _digest(message: JSONObject) -> bytes:
    fact = read_fact(orjson.dumps(message))
    assert fact is not None
    return fact.digest


def test_arguments_count_by_value() -> None:
    """White space and the order of keys in their text do not."""
    one, other = step(1)[0], step(1)[0]
    other["tool_calls"][0]["function"]["arguments"] = '{ "place": 0, "at": 1 }'
    assert _digest(one) == _digest(other)
    other["tool_calls"][0]["function"]["arguments"] = '{"place":0,"at":2}'
    assert _digest(one) != _digest(other)


def test_broken_arguments_count_as_text() -> None:
    """As do calls of custom tools."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}}
    custom = {"id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}}
    assert _digest(said("", tool_calls=[call])) != _digest(said("", tool_calls=[custom]))


def test_a_message_is_described_without_its_text() -> None:
    """Role, calls, what it answers, sizes and marks."""
    call, result = step(1)
    fact, answer = read_fact(orjson.dumps(call)), read_fact(orjson.dumps(result))
    assert fact is not None
    assert answer is not None
    assert (fact.calls, answer.answers, answer.content_chars) == (("c1_0",), "c1_0", 10)
    marked = read_fact(orjson.dumps({**user("x"), "cache_control": {}}))
    assert marked is not None
    assert marked.marked


@pytest.mark.parametrize("raw", [b"1", b"{}", b'{"role":1}', b"{"])
def test_what_is_no_message_has_no_fact(raw: bytes) -> None:
    """Nothing is guessed."""
    assert read_fact(raw) is None


def test_pictures_inside_count_by_content() -> None:
    """A data link has no query to leave out."""

    def look(data: str) -> JSONObject:
        url = {"url": f"data:image/png;base64,{data}"}
        return {"role": "user", "content": [{"type": "image_url", "image_url": url}]}

    assert _digest(look("AAAA")) != _digest(look("BBBB"))


def test_what_memory_puts_in_does_not_count() -> None:
    """It stands in a message on one request and may not on the next."""
    noted = "Call me Al.\n\n<memory_service>Say that you have taken note.</memory_service>"
    assert _digest(user(noted)) == _digest(user("Call me Al."))
    assert _digest(user(noted)) != _digest(user("Call me Bo."))
