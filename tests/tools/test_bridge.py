"""Bridge calls and real calls are two forms of the same call."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.tools.bridge import bridge_message, bridge_tool, read_bridge_call
from proxy.wire import JSON, JSONObject


def _message(name: str, arguments: JSON) -> JSONObject:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "x": 1, "tool_calls": [{"id": "i", "function": function}]}


@given(
    arguments=st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4), max_size=3)
)
def test_a_call_survives_the_bridge_and_back(arguments: dict[str, object]) -> None:
    """Name, arguments and id of a call are the same after both turns."""
    try:
        text = orjson.dumps(arguments).decode()
    except TypeError:  # integers beyond 64 bits
        return
    bridged = bridge_message(_message("f", text), "call_tool", {"f"})
    assert bridged is not None
    call = bridged["tool_calls"][0]
    assert (call["id"], call["function"]["name"]) == ("i", "call_tool")
    name, back = read_bridge_call(call["function"]["arguments"])
    assert (name, orjson.loads(back)) == ("f", arguments)


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"name":"f","arguments":{"a":1}}', ("f", '{"a":1}')),
        ('{"name":"f","arguments":"{\\"a\\":1}"}', ("f", '{"a":1}')),
        ('{"name":"f","a":1}', ("f", '{"a":1}')),
        ('{"name":"f"}', ("f", "{}")),
        ('{"arguments":{}}', ("", "{}")),
        ("{broken", ("", "{broken")),
        ("[1]", ("", "[1]")),
    ],
)
def test_models_write_bridge_calls_in_many_ways(arguments: str, read: tuple[str, str]) -> None:
    """What cannot be read has no name and keeps its text for the complaint."""
    assert read_bridge_call(arguments) == read


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant"},
        {"tool_calls": None},
        {"tool_calls": [3, {"function": 3}, {"function": {"name": 3}}]},
        _message("other", "{}"),
    ],
)
def test_other_messages_are_left_alone(message: JSONObject) -> None:
    """Declared tools and foreign shapes do not go through the bridge."""
    assert bridge_message(message, "call_tool", {"f"}) is None


@pytest.mark.parametrize("arguments", ["{broken", None, "", {"a": 1}])
def test_odd_arguments_do_not_break_a_history(arguments: JSON) -> None:
    """A history may hold anything; the bridged form is valid JSON all the same."""
    bridged = bridge_message(_message("f", arguments), "call_tool", {"f"})
    assert bridged is not None
    assert orjson.loads(bridged["tool_calls"][0]["function"]["arguments"])["name"] == "f"


def test_the_bridge_is_constant() -> None:
    """Its bytes depend on nothing but the names."""
    assert bridge_tool("call_tool", "tool_search") == bridge_tool("call_tool", "tool_search")
    assert b"tool_search" in bridge_tool("call_tool", "tool_search")
