"""Hidden rounds return to where they happened."""

import orjson
import pytest

from proxy.plan.weave import Edit, Memento, adopt_calls, weave_messages
from proxy.wire import JSON, JSONObject

_MESSAGES = b'[{"role": "user","content":"a"},{"role":"assistant","content":"b"} , {"role":"tool"}]'


def test_without_mementos_the_bytes_are_the_clients() -> None:
    """Nothing hidden means nothing changed."""
    assert weave_messages(_MESSAGES, {}) == _MESSAGES


def test_a_memento_surrounds_its_message() -> None:
    """Rounds come before the assistant's message, its replacement at it, results after it."""
    memento = Memento(
        discovered=("x",), before=({"n": 1},), message={"n": 2}, after=({"n": 3}, {"n": 4})
    )
    woven = weave_messages(_MESSAGES, {1: memento.edit({})})
    assert woven == (
        b'[{"role": "user","content":"a"},{"n":1},{"n":2},{"n":3},{"n":4},{"role":"tool"}]'
    )


def test_a_memento_without_message_keeps_the_clients() -> None:
    """Only what was different upstream is replaced."""
    woven = weave_messages(_MESSAGES, {1: Edit(before=({"n": 1},))})
    assert orjson.loads(woven)[1:3] == [{"n": 1}, {"role": "assistant", "content": "b"}]


def test_a_memento_survives_storage() -> None:
    """What is stored is what was kept."""
    memento = Memento(("a",), ({"x": [1]},), None, ({"y": None},))
    assert Memento.decode(memento.encode()) == memento
    assert memento
    assert not Memento()


@pytest.mark.parametrize("odd", [None, {}, [None, 3, {"id": 1}, {"id": "a", "function": "f"}]])
def test_odd_calls_of_a_client_change_nothing(odd: JSON) -> None:
    """A kept message is replaced only by what can be read as its own calls."""
    calls = [{"id": "a", "function": {"name": "f", "arguments": "{}"}}, {"id": "s", "x": 1}]
    kept: JSONObject = {"role": "assistant", "tool_calls": calls}
    assert adopt_calls(kept, {"tool_calls": odd}) == kept
    assert adopt_calls({"content": "x"}, {"tool_calls": odd}) == {"content": "x"}
