"""Every form of tool_choice is understood or left alone."""

import orjson
import pytest

from proxy.tools.choice import Choice, narrow_allowed, read_choice
from proxy.wire import JSON

_F = {"type": "function", "function": {"name": "f"}}
_ALLOWED = {
    "type": "allowed_tools",
    "allowed_tools": {"mode": "required", "tools": [_F, {"type": "function", "name": "g"}]},
}


@pytest.mark.parametrize(
    ("value", "choice"),
    [
        (None, Choice("auto")),
        ("auto", Choice("auto")),
        ("none", Choice("none")),
        ("required", Choice("required")),
        (_F, Choice("named", ("f",))),
        ({"type": "custom", "custom": {"name": "c"}}, Choice("named", ("c",))),
        (_ALLOWED, Choice("allowed", ("f", "g"), "required")),
        ("any", Choice("unknown")),
        (3, Choice("unknown")),
        ({"type": "function"}, Choice("unknown")),
        ({"type": ["x"]}, Choice("unknown")),
        ({"type": "function", "function": {"name": 3}}, Choice("unknown")),
        ({"type": "allowed_tools", "allowed_tools": {"tools": "f"}}, Choice("unknown")),
        ({"type": "allowed_tools", "allowed_tools": {"tools": [3]}}, Choice("unknown")),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "x", "tools": [_F]}},
            Choice("unknown"),
        ),
    ],
)
def test_a_choice_is_read(value: JSON, choice: Choice) -> None:
    """What is none of OpenAI's forms is unknown, never guessed."""
    assert read_choice(value) == choice


def test_allowed_tools_bound_what_may_be_called() -> None:
    """Only an allowed_tools choice forbids a tool."""
    assert read_choice(_ALLOWED).permits("f")
    assert not read_choice(_ALLOWED).permits("x")
    assert Choice("required").permits("x")


def test_a_narrowed_choice_names_declared_tools_and_ours() -> None:
    """An upstream refuses a choice that speaks of undeclared tools."""
    narrowed = orjson.loads(narrow_allowed(_ALLOWED, {"g"}, "tool_search"))
    assert narrowed["allowed_tools"]["mode"] == "required"
    assert narrowed["allowed_tools"]["tools"] == [
        {"type": "function", "name": "g"},
        {"type": "function", "function": {"name": "tool_search"}},
    ]
    assert orjson.loads(narrow_allowed(_ALLOWED, {"f"}, None))["allowed_tools"]["tools"] == [_F]
