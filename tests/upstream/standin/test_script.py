"""Scripted replies."""

import json

from proxy.upstream.standin.script import Received, Script, Step


def _received(**body: object) -> Received:
    return Received("POST", "/v1/chat/completions", [], json.dumps(body).encode())


def test_steps_are_used_in_order_and_then_the_model_answers() -> None:
    """An exhausted script hands out steps that change nothing."""
    script = Script([Step(status=500), Step(status=501)])
    assert [script.next(_received()).status for _ in range(3)] == [500, 501, 200]


def test_every_request_is_kept() -> None:
    """In order, parsed on demand."""
    script = Script()
    script.next(_received(model="a"))
    script.next(_received(model="b"))
    assert [received.json["model"] for received in script.received] == ["a", "b"]


def test_unplayed_steps_are_counted() -> None:
    """So that a test can insist that all were used."""
    script = Script([Step(), Step()])
    script.next(_received())
    assert script.unplayed == 1


def test_the_names_of_received_tools_are_read() -> None:
    """Functions only."""
    tools = [{"type": "function", "function": {"name": "a"}}, {"type": "custom", "custom": {}}]
    assert _received(tools=tools).tool_names == ["a"]
    assert _received().tool_names == []
