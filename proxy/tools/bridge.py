"""The frozen delivery's bridge: real calls and `call_tool` calls are turned into each other."""

from collections.abc import Container

import orjson

from proxy.wire import JSON, JSONObject

NAME = "call_tool"
PURPOSE = (
    "Calls a tool of the list in {search} whose parameters are known from a search result."
    " Its result comes back as the result of this call."
)


def bridge_tool(name: str, search_name: str) -> bytes:
    """The JSON of the bridge; constant, so that nothing is ever added to `tools`."""
    parameters = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Name of the tool."},
            "arguments": {"type": "object", "description": "Its arguments, by its own schema."},
        },
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
    function = {
        "name": name,
        "description": PURPOSE.format(search=search_name),
        "parameters": parameters,
    }
    return orjson.dumps({"type": "function", "function": function})


def read_bridge_call(arguments: str) -> tuple[str, str]:
    """The tool that a bridge call means and its argument text.

    Models send the inner arguments as an object, as a JSON string, or beside the name.
    """
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return "", arguments
    if not isinstance(value, dict):
        return "", arguments
    name = value.get("name")
    inner = value.get("arguments")
    if inner is None:
        inner = {key: item for key, item in value.items() if key not in ("name", "arguments")}
    text = inner if isinstance(inner, str) else orjson.dumps(inner).decode()
    return name if isinstance(name, str) else "", text


def bridge_message(message: JSONObject, name: str, pool: Container[str]) -> JSONObject | None:
    """An assistant message whose calls of undeclared tools go through the bridge.

    Ids and all other fields stay. None when no call has to change.
    """
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return None
    bridged = [_bridge_call(call, name, pool) for call in calls]
    if all(new is old for new, old in zip(bridged, calls, strict=True)):
        return None
    return {**message, "tool_calls": bridged}


def _bridge_call(call: JSON, name: str, pool: Container[str]) -> JSON:
    function = call.get("function") if isinstance(call, dict) else None
    inner = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(inner, str) or inner not in pool:
        return call
    text = function.get("arguments")
    arguments = orjson.dumps({"name": inner, "arguments": _as_object(text)}).decode()
    return {**call, "function": {**function, "name": name, "arguments": arguments}}


def _as_object(arguments: JSON) -> JSON:
    """The arguments as an object where they are one; else as they were written."""
    if not isinstance(arguments, str):
        return arguments or {}
    try:
        value = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        return arguments
    return value if isinstance(value, dict) else arguments
