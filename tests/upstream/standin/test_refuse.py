"""OpenAI's complaints."""

import pytest

from proxy.upstream.standin.refuse import refuse
from proxy.wire import JSON, JSONObject

ASK: JSONObject = {"role": "user", "content": "hi"}
CALL: JSONObject = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function"}]}
RESULT: JSONObject = {"role": "tool", "tool_call_id": "c1", "content": "x"}


def _tool(name: JSON, **more: JSON) -> JSONObject:
    return {"type": "function", "function": {"name": name, **more}}


ARRAY, BAD_SCHEMA = {"type": "array"}, "invalid_function_parameters"
ALLOWED_B = {"type": "allowed_tools", "allowed_tools": {"tools": [_tool("b")]}}


def _body(**changes: JSON) -> JSONObject:
    return {"model": "m", "messages": [ASK], **changes}


@pytest.mark.parametrize(
    "body",
    [
        _body(),
        _body(messages=[ASK, CALL, RESULT]),
        _body(tools=None),
        _body(tools=[_tool("a", parameters={"type": "object"})], tool_choice="required"),
        _body(tools=[{"type": "custom", "custom": {"name": "c"}}]),
        _body(stream=True, stream_options={"include_usage": True}),
    ],
)
def test_good_requests_pass(body: JSONObject) -> None:
    """Nothing is wrong with them."""
    assert refuse(body, max_tools=128) is None


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ([], None, None),
        (_body(model=""), "model", "missing_required_parameter"),
        ({"model": "m"}, "messages", "missing_required_parameter"),
        (_body(messages="hi"), "messages", "invalid_type"),
        (_body(messages=[]), "messages", "empty_array"),
        (_body(messages=["hi"]), "messages[0]", "invalid_type"),
        (_body(messages=[ASK, {"role": "robot"}]), "messages[1].role", "invalid_value"),
        (_body(messages=[ASK, RESULT]), "messages[1].role", None),
        (_body(messages=[ASK, CALL, ASK]), "messages[1]", None),
        (_body(messages=[ASK, CALL]), "messages[1]", None),
        (_body(tools={}), "tools", "invalid_type"),
        (_body(tools=[]), "tools", "empty_array"),
        (_body(tools=[_tool(f"t{i}") for i in range(129)]), "tools", "array_above_max_length"),
        (_body(tools=["x"]), "tools[0]", "invalid_type"),
        (_body(tools=[{"type": "web"}]), "tools[0].type", "invalid_value"),
        (_body(tools=[{"type": ["function"]}]), "tools[0].type", "invalid_value"),
        (_body(tools=[{"type": {}}]), "tools[0].type", "invalid_value"),
        (_body(tools=[{"type": "function"}]), "tools[0].function", "invalid_type"),
        (_body(tools=[_tool(None)]), "tools[0].function.name", "missing_required_parameter"),
        (_body(tools=[_tool("a"), _tool("b.c")]), "tools[1].function.name", "invalid_value"),
        (_body(tools=[_tool("x" * 65)]), "tools[0].function.name", "string_above_max_length"),
        (_body(tools=[_tool("a", parameters=ARRAY)]), "tools[0].function.parameters", BAD_SCHEMA),
        (_body(tool_choice="auto"), "tool_choice", None),
        (_body(tools=[_tool("a")], tool_choice=_tool("b")), "tool_choice", None),
        (_body(tools=[_tool("a")], tool_choice=ALLOWED_B), "tool_choice", None),
        (_body(stream_options={}), "stream_options", None),
    ],
)  # fmt: skip
def test_bad_requests_are_refused_with_the_place_of_the_mistake(
    body: JSON, param: str | None, code: str | None
) -> None:
    """Status 400 and all four keys of OpenAI's error object."""
    refusal = refuse(body, max_tools=128)
    assert refusal
    error = refusal.body()["error"]
    assert (refusal.status, error["param"], error["code"]) == (400, param, code)
    assert error["type"] == "invalid_request_error"
    assert error["message"]


def test_the_ceiling_for_tools_is_off_unless_wanted() -> None:
    """The demo sends 235 of them."""
    assert refuse(_body(tools=[_tool(f"t{i}") for i in range(235)])) is None
