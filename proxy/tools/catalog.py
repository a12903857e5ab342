"""The client's `tools` array comes in; a catalogue that still holds its bytes goes out."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import xxhash

from proxy.tools.group import learn_groups

VALID_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""OpenAI's rule for function names; an invalid one is left for the upstream to refuse."""

_NATIVE_KINDS = ("tool_search", "openrouter:tool_search", "orq:tool_search")
_RawObject = dict[str, msgspec.Raw]


@dataclass(frozen=True, slots=True)
class Tool:
    """One entry of the client's `tools` array.

    `raw` is what goes upstream: the client's own bytes, less a `defer_loading` mark, which servers
    without deferral refuse. `parameters` is the raw JSON schema, or None when there is none.
    `breakpoint` says that the client put a `cache_control` on it.
    """

    position: int
    raw: bytes
    kind: str
    name: str
    description: str
    parameters: bytes | None
    strict: bool
    defer_loading: bool | None
    group: str
    breakpoint: bool = False


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All tools of a request, in the client's order.

    `by_name` holds the functions once each; `conflicting` the names that stand for several
    different tools; `repeated` the positions of later identical copies. `native` says that the
    client drives its provider's own deferral, which is passed through whole.
    """

    digest: str
    tools: tuple[Tool, ...]
    by_name: Mapping[str, Tool]
    conflicting: frozenset[str]
    repeated: frozenset[int]
    chars: int
    native: bool


def digest_tools(raw: bytes | memoryview) -> str:
    """A hash of the array and its length; not collision-resistant, so keep it per tenant."""
    return f"{xxhash.xxh3_128_hexdigest(raw)}-{len(raw):x}"


def read_catalogue(raw: bytes | memoryview) -> Catalogue | None:
    """The catalogue of a `tools` array; None when any entry is malformed, or there is none."""
    try:
        entries = msgspec.json.decode(raw, type=list[msgspec.Raw])
        tools = [_read_tool(position, bytes(entry)) for position, entry in enumerate(entries)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not tools:
        return None
    grouped = _assign_groups(tools)
    by_name, conflicting, repeated = _index_names(grouped)
    return Catalogue(
        digest=digest_tools(raw),
        tools=tuple(grouped),
        by_name=by_name,
        conflicting=conflicting,
        repeated=repeated,
        chars=len(raw),
        native=any(_is_native(tool.kind) for tool in tools),
    )


def _read_tool(position: int, raw: bytes) -> Tool:
    """Raises msgspec.DecodeError when the entry is not a tool as OpenAI describes one."""
    entry = msgspec.json.decode(raw, type=_RawObject)
    kind = _decode_str(entry["type"]) if "type" in entry else "function"
    body = entry.get(kind) if kind in ("function", "custom") else None
    if body is None:
        if kind == "function":
            raise msgspec.ValidationError("a function tool without its function")
        return _vendor_tool(position, raw, kind, entry)
    inner = msgspec.json.decode(body, type=_RawObject)
    mark = inner.get("defer_loading", entry.get("defer_loading"))
    return Tool(
        position=position,
        raw=raw if mark is None else _strip_mark(entry, kind, inner),
        kind=kind,
        name=_decode_str(inner["name"]) if "name" in inner else "",
        description=_text_or_empty(inner.get("description")),
        parameters=_schema_or_none(inner.get("parameters")),
        strict=bytes(inner.get("strict", b"")) == b"true",
        defer_loading=None if mark is None else bytes(mark) == b"true",
        group="",
        breakpoint="cache_control" in entry or "cache_control" in inner,
    )


def _vendor_tool(position: int, raw: bytes, kind: str, entry: _RawObject) -> Tool:
    return Tool(
        position=position,
        raw=raw,
        kind=kind,
        name=_text_or_empty(entry.get("name")),
        description=_text_or_empty(entry.get("description")),
        parameters=None,
        strict=False,
        defer_loading=None,
        group="",
    )


def _strip_mark(entry: _RawObject, kind: str, inner: _RawObject) -> bytes:
    body = {key: value for key, value in inner.items() if key != "defer_loading"}
    outer = {key: value for key, value in entry.items() if key != "defer_loading"}
    outer[kind] = msgspec.Raw(msgspec.json.encode(body))
    return msgspec.json.encode(outer)


def _decode_str(raw: msgspec.Raw) -> str:
    return msgspec.json.decode(raw, type=str)


def _text_or_empty(raw: msgspec.Raw | None) -> str:
    value = b"" if raw is None else bytes(raw)
    return _decode_str(msgspec.Raw(value)) if value.startswith(b'"') else ""


def _schema_or_none(raw: msgspec.Raw | None) -> bytes | None:
    value = b"" if raw is None else bytes(raw)
    return value if value.startswith(b"{") else None


def _assign_groups(tools: Sequence[Tool]) -> list[Tool]:
    groups = learn_groups([tool.name for tool in tools])
    return [
        replace(tool, group=group) if group else tool
        for tool, group in zip(tools, groups, strict=True)
    ]


def _index_names(
    tools: Sequence[Tool],
) -> tuple[dict[str, Tool], frozenset[str], frozenset[int]]:
    by_name: dict[str, Tool] = {}
    conflicting: set[str] = set()
    repeated: set[int] = set()
    for tool in tools:
        first = by_name.setdefault(tool.name, tool)
        if first is tool:
            continue
        if first.raw == tool.raw:
            repeated.add(tool.position)
        else:
            conflicting.add(tool.name)
    return by_name, frozenset(conflicting), frozenset(repeated)


def _is_native(kind: str) -> bool:
    return kind in _NATIVE_KINDS or kind.startswith("tool_search_tool_")
