"""The client's `tool_choice` comes in; what it allows, and what it becomes upstream, goes out."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Literal

import orjson

from proxy.wire import JSON

Kind = Literal["auto", "none", "required", "named", "allowed", "unknown"]


@dataclass(frozen=True, slots=True)
class Choice:
    """`names` are the tools that a named or allowed choice speaks of; `mode` is allowed's own."""

    kind: Kind
    names: tuple[str, ...] = ()
    mode: str = "auto"

    def permits(self, name: str) -> bool:
        """Whether the model may call that tool at all."""
        return self.kind != "allowed" or name in self.names


def read_choice(value: JSON) -> Choice:
    """Any of the five forms of OpenAI's `tool_choice`; "unknown" for everything else."""
    if value is None:
        return Choice("auto")
    if value in ("auto", "none", "required"):
        return Choice(value)
    if not isinstance(value, dict):
        return Choice("unknown")
    kind = value.get("type")
    inner = value.get(kind) if isinstance(kind, str) else None
    if not isinstance(inner, dict):
        return Choice("unknown")
    if kind == "allowed_tools":
        return _read_allowed(inner)
    name = inner.get("name")
    if kind in ("function", "custom") and isinstance(name, str):
        return Choice("named", (name,))
    return Choice("unknown")


def narrow_allowed(value: JSON, declared: Container[str], added: str | None) -> bytes:
    """An allowed_tools choice that names only declared tools, and ours.

    Upstreams refuse a choice that names a tool which is not in `tools`.
    """
    inner = value["allowed_tools"]
    tools = [tool for tool in inner["tools"] if _name_of(tool) in declared]
    if added is not None:
        tools.append({"type": "function", "function": {"name": added}})
    return orjson.dumps({**value, "allowed_tools": {**inner, "tools": tools}})


def _read_allowed(inner: JSON) -> Choice:
    tools, mode = inner.get("tools"), inner.get("mode", "auto")
    if not isinstance(tools, list) or mode not in ("auto", "required"):
        return Choice("unknown")
    names = [_name_of(tool) for tool in tools]
    if None in names:
        return Choice("unknown")
    return Choice("allowed", tuple(name for name in names if name is not None), mode)


def _name_of(tool: JSON) -> str | None:
    """The name in {"type": "function", "function": {"name"}} or {"type": "function", "name"}."""
    if not isinstance(tool, dict):
        return None
    inner = tool.get(str(tool.get("type")))
    name = inner.get("name") if isinstance(inner, dict) else tool.get("name")
    return name if isinstance(name, str) else None
