"""The body of a chat request goes in; OpenAI's complaint about it, if it has one, comes out."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from proxy.tools.choice import read_choice
from proxy.wire import JSON, JSONObject

ROLES = ("system", "assistant", "user", "function", "tool", "developer")
NAME = re.compile(r"[a-zA-Z0-9_-]+")
MAX_NAME = 64
ORPHAN = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceding message"
    " with 'tool_calls'."
)
UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to"
    " each 'tool_call_id'."
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error reply in OpenAI's shape."""

    message: str
    param: str | None = None
    code: str | None = None
    status: int = 400

    def body(self) -> JSONObject:
        """The error object with all four keys."""
        error = {
            "message": self.message,
            "type": "invalid_request_error",
            "param": self.param,
            "code": self.code,
        }
        return {"error": error}


UNPARSABLE = Refusal("We could not parse the JSON body of your request.")


def refuse(body: JSON, max_tools: int | None = None) -> Refusal | None:
    """The first thing that is wrong with a request; `max_tools` is OpenAI's 128 if given."""
    if not isinstance(body, dict):
        return UNPARSABLE
    checks: tuple[Callable[[JSONObject], Iterator[Refusal]], ...] = (
        _check_model,
        _check_messages,
        _check_results,
        lambda body: _check_tools(body.get("tools"), max_tools),
        _check_choice,
        _check_stream,
    )
    return next((refusal for check in checks for refusal in check(body)), None)


def _check_model(body: JSONObject) -> Iterator[Refusal]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield Refusal("you must provide a model parameter", "model", "missing_required_parameter")


def _check_messages(body: JSONObject) -> Iterator[Refusal]:
    messages = body.get("messages")
    if messages is None:
        yield _missing("messages")
    elif not isinstance(messages, list):
        yield _wrong_type("messages", "an array of objects", messages)
    elif not messages:
        yield _empty_array("messages")
    else:
        yield from (r for i, message in enumerate(messages) for r in _check_message(message, i))


def _check_message(message: JSON, position: int) -> Iterator[Refusal]:
    param = f"messages[{position}]"
    if not isinstance(message, dict):
        yield _wrong_type(param, "an object", message)
    elif message.get("role") not in ROLES:
        supported = ", ".join(f"'{role}'" for role in ROLES)
        text = f"Invalid value: '{message.get('role')}'. Supported values are: {supported}."
        yield Refusal(text, f"{param}.role", "invalid_value")


def _check_results(body: JSONObject) -> Iterator[Refusal]:
    """Every tool message answers a call before it, and every call is answered at once."""
    messages = body["messages"]
    open_ids: set[str] = set()
    for position, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_ids:
                yield Refusal(ORPHAN, f"messages[{position}].role")
            continue
        calls = message.get("tool_calls") or ()
        open_ids = {str(call.get("id")) for call in calls if isinstance(call, dict)}
        following = takewhile(lambda m: m["role"] == "tool", messages[position + 1 :])
        missing = open_ids - {answer.get("tool_call_id") for answer in following}
        if missing:
            text = f"{UNANSWERED} Missing: {', '.join(sorted(missing))}"
            yield Refusal(text, f"messages[{position}]")


def _check_tools(tools: JSON, max_tools: int | None) -> Iterator[Refusal]:
    if isinstance(tools, list) and not tools:
        yield _empty_array("tools")
    elif isinstance(tools, list) and max_tools is not None and len(tools) > max_tools:
        text = f"Expected an array with maximum length {max_tools}, but got length {len(tools)}."
        yield Refusal(f"Invalid 'tools': array too long. {text}", "tools", "array_above_max_length")
    elif isinstance(tools, list):
        yield from (refusal for i, tool in enumerate(tools) for refusal in _check_tool(tool, i))
    elif tools is not None:
        yield _wrong_type("tools", "an array of objects", tools)


def _check_tool(tool: JSON, position: int) -> Iterator[Refusal]:
    param = f"tools[{position}]"
    kind = tool.get("type") if isinstance(tool, dict) else None
    if not isinstance(tool, dict):
        yield _wrong_type(param, "an object", tool)
    elif kind not in ("function", "custom"):
        text = f"Invalid value: '{kind}'. Supported values are: 'function' and 'custom'."
        yield Refusal(text, f"{param}.type", "invalid_value")
    elif not isinstance(tool.get(kind), dict):
        yield _wrong_type(f"{param}.{kind}", "an object", tool.get(kind))
    else:
        yield from _check_name(tool[kind].get("name"), f"{param}.{kind}.name")
        yield from _check_schema(tool[kind], f"{param}.{kind}.parameters")


def _check_schema(function: JSONObject, param: str) -> Iterator[Refusal]:
    schema = function.get("parameters")
    if schema and (not isinstance(schema, dict) or schema.get("type") != "object"):
        text = f"Invalid schema for function '{function.get('name')}': not of type 'object'."
        yield Refusal(text, param, "invalid_function_parameters")


def _check_name(name: JSON, param: str) -> Iterator[Refusal]:
    if not isinstance(name, str):
        yield _missing(param)
    elif not NAME.fullmatch(name):
        text = "string does not match pattern. Expected a string that matches '^[a-zA-Z0-9_-]+$'."
        yield Refusal(f"Invalid '{param}': {text}", param, "invalid_value")
    elif len(name) > MAX_NAME:
        text = f"string too long. Expected at most {MAX_NAME} characters, but got {len(name)}."
        yield Refusal(f"Invalid '{param}': {text}", param, "string_above_max_length")


def _check_choice(body: JSONObject) -> Iterator[Refusal]:
    choice, tools = body.get("tool_choice"), body.get("tools") or ()
    if choice is not None and not tools:
        text = "'tool_choice' is only allowed when 'tools' are specified."
        yield Refusal(f"Invalid value for 'tool_choice': {text}", "tool_choice")
    declared = {tool[tool["type"]]["name"] for tool in tools}
    for name in read_choice(choice).names:
        if name not in declared:
            text = f"Tool choice '{name}' not found in 'tools' parameter."
            yield Refusal(f"Invalid value for 'tool_choice': {text}", "tool_choice")


def _check_stream(body: JSONObject) -> Iterator[Refusal]:
    if body.get("stream_options") is not None and not body.get("stream"):
        text = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        yield Refusal(text, "stream_options")


def _wrong_type(param: str, expected: str, value: JSON) -> Refusal:
    names = {dict: "an object", list: "an array", str: "a string", type(None): "null"}
    got = names.get(type(value), "a number or boolean")
    text = f"Invalid type for '{param}': expected {expected}, but got {got} instead."
    return Refusal(text, param, "invalid_type")


def _missing(param: str) -> Refusal:
    text = f"Missing required parameter: '{param}'."
    return Refusal(text, param, "missing_required_parameter")


def _empty_array(param: str) -> Refusal:
    text = "empty array. Expected an array with minimum length 1, but got an empty array instead."
    return Refusal(f"Invalid '{param}': {text}", param, "empty_array")
