"""Deferred tools go in; the text that names them all, and the search tool around it, come out."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

import orjson

from proxy.tools.document import Document
from proxy.tools.group import local_name
from proxy.wire import JSON

Count = Callable[[str], int]
Members = Sequence[tuple[str, Document]]
"""(name below the group's pattern, tool)."""

PURPOSE = (
    "Loads tools. Those below are yours, only their parameters are not loaded: never call one"
    " unavailable. Call a listed tool directly when you know its arguments; otherwise search for"
    " what the task needs: matches become callable. `a_*: b, c` lists a_b and a_c."
)
QUERIES = "English keywords, one query per capability; or names."
OTHER = "other"
SHARED = 3
"""So many names make a beginning worth naming once."""
_SEPARATOR = re.compile(r"__|[_\-./:]")


def render_listing(documents: Sequence[Document], max_tokens: int, count: Count) -> str:
    """Name every tool, with as much detail as fits: signatures, names, or group sizes."""
    groups = _sort(documents, _shared_prefixes(documents))
    for line in (_signature_line, _name_line):
        text = "\n".join(line(pattern, groups[pattern]) for pattern in groups)
        if count(text) <= max_tokens:
            return text
    return _fit_groups(_sort(documents, {}), max_tokens, count)


def _fit_groups(groups: Mapping[str, Members], max_tokens: int, count: Count) -> str:
    """Name the tools of as many groups as fit, small ones first; of the others the number."""
    lines = {pattern: _size_line(pattern, members) for pattern, members in groups.items()}
    spare = max_tokens - count("\n".join(lines.values()))
    costs = {
        pattern: count(f"\n{_name_line(pattern, members)}") - count(f"\n{lines[pattern]}") + 1
        for pattern, members in groups.items()
    }
    for pattern in sorted(groups, key=lambda pattern: (costs[pattern], pattern)):
        if costs[pattern] > spare:
            break
        spare -= costs[pattern]
        lines[pattern] = _name_line(pattern, groups[pattern])
    return "\n".join(lines.values())


def _shared_prefixes(documents: Sequence[Document]) -> dict[str, str]:
    """For each name the longest beginning that enough others have: naming it once saves tokens."""
    names = [document.name for document in documents]
    ends = {
        name: [m.end() for m in _SEPARATOR.finditer(name, 1) if m.end() < len(name)]
        for name in names
    }
    counts = Counter(name[:end] for name in names for end in ends[name])
    shared = {
        name: max((name[:end] for end in ends[name] if counts[name[:end]] >= SHARED), default="")
        for name in names
    }
    return {name: prefix for name, prefix in shared.items() if prefix}


def _sort(documents: Sequence[Document], prefixes: Mapping[str, str]) -> dict[str, Members]:
    """Sort tools under the part of the name they share: `storage_*`; the client's order within."""
    groups = defaultdict[str, list[tuple[str, Document]]](list)
    for document in documents:
        name, group = document.name, document.group
        local = (
            name.removeprefix(prefixes.get(name, ""))
            if name in prefixes
            else local_name(name, group)
        )
        groups["" if local == name else _pattern(name, local)].append((local, document))
    return {pattern: groups[pattern] for pattern in sorted(groups, key=lambda p: (p == "", p))}


def _pattern(name: str, local: str) -> str:
    if name.endswith(local):
        return f"{name.removesuffix(local)}*"
    return f"*{name.removeprefix(local)}"


def _signature_line(pattern: str, members: Members) -> str:
    return _line(pattern, [f"{local}{_required(tool.parameters)}" for local, tool in members])


def _name_line(pattern: str, members: Members) -> str:
    return _line(pattern, [local for local, _ in members])


def _size_line(pattern: str, members: Members) -> str:
    return f"{pattern or OTHER} ({len(members)} tools)"


def _line(pattern: str, parts: Sequence[str]) -> str:
    return f"{pattern or OTHER}: {', '.join(parts)}"


def _required(schema: bytes | None) -> str:
    try:
        parsed: JSON = orjson.loads(schema) if schema else {}
    except orjson.JSONDecodeError:
        parsed = {}
    required = parsed.get("required") if isinstance(parsed, dict) else None
    names = [n for n in required if isinstance(n, str)] if isinstance(required, list) else []
    return f"({', '.join(names)})"


def mark_breakpoint(tool: bytes) -> bytes:
    """The tool with the mark up to which a provider caches; the same bytes every time."""
    return tool[:-1] + b',"cache_control":{"type":"ephemeral"}}'


def search_tool(name: str, listing: str) -> bytes:
    """The search tool as the upstream receives it: the same bytes for the same catalogue."""
    queries = {"type": "array", "items": {"type": "string"}, "description": QUERIES}
    parameters = {
        "type": "object",
        "properties": {
            "queries": queries,
            "group": {"type": "string"},
            "limit": {"type": "integer"},
        },
        "required": ["queries"],
    }
    function = {
        "name": name,
        "description": f"{PURPOSE}\n{listing}",
        "parameters": parameters,
    }
    return orjson.dumps({"type": "function", "function": function})
