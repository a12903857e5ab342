"""Lines that `--capture` wrote come in; a labelled set for the other `usher eval`s goes out.

Queries that ended in several tools get one slot that any of them meets.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from proxy.errors import ConfigError
from proxy.evals.sets import CATALOGUE, QUERIES
from proxy.wire import JSON, JSONObject


@dataclass(slots=True)
class Candidate:
    """A captured query, the tools that its searches ended in, and what was shown beside them."""

    query: str
    tools: dict[str, None] = field(default_factory=dict)
    others: dict[str, None] = field(default_factory=dict)

    def row(self, number: int) -> JSONObject:
        """The query as a line of the set."""
        return {"qid": str(number), "query": self.query, "gold": [list(self.tools)]}


Ask = Callable[[Candidate], bool]
"""Whether a candidate belongs into the set."""


def curate(captured: Path, folder: Path, tools: Path | None, ask: Ask) -> JSONObject:
    """Add to the set in `folder` what is new in a captured file; returns what became of it.

    Raises ConfigError when a file is missing or is not what it should be.
    """
    lines, malformed = read_captured(captured)
    catalogue = _by_id(_read_lines(folder / CATALOGUE)) | (_read_tools(tools) if tools else {})
    if not catalogue:
        raise ConfigError(f"{folder.name}: no {CATALOGUE} yet; name the tools with --tools FILE")
    rows = _read_lines(folder / QUERIES)
    labelled = {_normalise(str(row.get("query"))) for row in rows}
    known = [line for line in lines if line["tool"] in catalogue]
    candidates = group(known)
    new = [one for key, one in candidates.items() if key not in labelled]
    kept = [candidate for candidate in new if ask(candidate)]
    rows += [candidate.row(number) for number, candidate in enumerate(kept, len(rows))]
    folder.mkdir(parents=True, exist_ok=True)
    _write_lines(folder / CATALOGUE, catalogue.values())
    _write_lines(folder / QUERIES, rows)
    return {
        "set": folder.resolve().name,
        "lines": len(lines),
        "malformed": malformed,
        "unknown_tools": len(lines) - len(known),
        "known_queries": len(candidates) - len(new),
        "rejected": len(new) - len(kept),
        "added": len(kept),
        "queries": len(rows),
        "tools": len(catalogue),
    }


def read_captured(path: Path) -> tuple[list[JSONObject], int]:
    """The lines with a query and a tool, and how many are no such line, as after a full disk."""
    read = [_decode(line) for line in _read_bytes(path).splitlines() if line.strip()]
    lines = [line for line in read if isinstance(line, dict) and _is_captured(line)]
    return lines, len(read) - len(lines)


def group(lines: Iterable[JSONObject]) -> dict[str, Candidate]:
    """One candidate per query, however it was spaced and capitalised."""
    found: dict[str, Candidate] = {}
    for line in lines:
        candidate = found.setdefault(_normalise(line["query"]), Candidate(line["query"].strip()))
        candidate.tools[line["tool"]] = None
        others = line.get("others")
        names = others if isinstance(others, list) else []
        candidate.others.update(dict.fromkeys(map(str, names)))
    return found


def _is_captured(line: JSONObject) -> bool:
    query, tool = line.get("query"), line.get("tool")
    return isinstance(query, str) and bool(query.strip()) and isinstance(tool, str)


def _normalise(query: str) -> str:
    return " ".join(query.casefold().split())


def _read_tools(path: Path) -> dict[str, JSONObject]:
    """The functions of a `tools` array, or of a chat request that holds one."""
    parsed = _decode(_read_bytes(path))
    tools = parsed.get("tools") if isinstance(parsed, dict) else parsed
    if not isinstance(tools, list):
        raise ConfigError(f"{path.name}: no `tools` array")
    functions = [tool.get("function") for tool in tools if isinstance(tool, dict)]
    return _by_id(_entry(one) for one in functions if isinstance(one, dict) and _is_named(one))


def _is_named(function: JSONObject) -> bool:
    name = function.get("name")
    return isinstance(name, str) and bool(name)


def _entry(function: JSONObject) -> JSONObject:
    kinds = {"description": str, "parameters": dict}
    kept = {
        key: function[key] for key, kind in kinds.items() if isinstance(function.get(key), kind)
    }
    return {"id": function["name"], "name": function["name"], **kept}


def _by_id(rows: Iterable[JSONObject]) -> dict[str, JSONObject]:
    return {str(row.get("id", row.get("name"))): row for row in rows}


def _read_lines(path: Path) -> list[JSONObject]:
    """The rows of a set's file; none where there is no file yet."""
    if not path.exists():
        return []
    rows = [_decode(line) for line in _read_bytes(path).splitlines() if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise ConfigError(f"{path.name}: not a JSON object on every line")
    return rows


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error


def _decode(line: bytes) -> JSON:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _write_lines(path: Path, rows: Iterable[Mapping[str, JSON]]) -> None:
    """Replaces a file at once, so that a set is never half written."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows))
    fresh.replace(path)
