"""A folder of labelled questions comes in; a checked set of tools and queries goes out."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import orjson

from proxy.errors import ConfigError
from proxy.evals.lines import Line, read_lines
from proxy.tools.document import Document
from proxy.tools.group import learn_groups
from proxy.wire import JSON, JSONObject

CATALOGUE, QUERIES, CONVERSATIONS = "catalogue.jsonl", "queries.jsonl", "conversations.jsonl"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A query; `gold` has one slot per tool that it needs, met by any of the slot's ids."""

    text: str
    gold: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tools of a set, each with the id that its labels use."""

    name: str
    documents: tuple[Document, ...]
    ids: tuple[str, ...]

    @property
    def known(self) -> frozenset[str]:
        """The ids, for looking them up."""
        return frozenset(self.ids)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A task and the ids of the tools that it takes, in order."""

    task: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A message and whether it needs a tool."""

    text: str
    needs_tool: bool
    language: str


def read_catalogue(folder: Path) -> Catalogue:
    """Read `catalogue.jsonl`: {id, name, description, parameters?}; without an id, the name is it.

    Raises ConfigError when it is not that, as all that follow do for their files.
    """
    rows = read_lines(folder / CATALOGUE)
    names = [_read_name(row, where) for row, where in rows]
    documents = [
        Document(name, group, _read_text(row, "description", where), _read_schema(row, where))
        for name, group, (row, where) in zip(names, learn_groups(names), rows, strict=True)
    ]
    return Catalogue(folder.resolve().name, tuple(documents), _read_ids(rows))


def read_queries(folder: Path, known: Collection[str]) -> list[Labelled]:
    """Read `queries.jsonl`: {query, gold: [[id, …], …]}; of a slot only the known ids are kept."""
    return [
        Labelled(_text(row, "query", where), _read_gold(row, where, known))
        for row, where in read_lines(folder / QUERIES)
    ]


def read_conversations(folder: Path, known: Collection[str]) -> list[Conversation]:
    """Read `conversations.jsonl`: {task, tools}; without it, queries that need several tools."""
    if (folder / CONVERSATIONS).exists():
        return [
            Conversation(_text(row, "task", where), _read_steps(row, where, known))
            for row, where in read_lines(folder / CONVERSATIONS)
        ]
    return [
        Conversation(query.text, tuple(min(slot) for slot in query.gold))
        for query in read_queries(folder, known)
        if len(query.gold) > 1
    ]


def read_messages(folder: Path) -> list[Message]:
    """Read `queries.jsonl`: {query, needs_tool, lang?}."""
    return [
        Message(_text(row, "query", where), _read_need(row, where), _read_text(row, "lang", where))
        for row, where in read_lines(folder / QUERIES)
    ]


def _text(row: JSONObject, key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise ConfigError(f"{where}: `{key}` is no text")
    return value


def _read_text(row: JSONObject, key: str, where: str) -> str:
    """A text that may be missing."""
    return "" if row.get(key) is None else _text(row, key, where)


def _read_name(row: JSONObject, where: str) -> str:
    name = _text(row, "name", where)
    if not name:
        raise ConfigError(f"{where}: `name` is empty")
    return name


def _read_ids(rows: Collection[Line]) -> tuple[str, ...]:
    """The ids in order. Raises ConfigError for one that stands twice: labels could mean either."""
    places: dict[str, str] = {}
    for row, where in rows:
        own = row["name"] if row.get("id") is None else row["id"]
        name = _read_id(own, f"{where}: `id`")
        if name in places:
            raise ConfigError(f"{where}: the id {name!r} is that of {places[name]} too")
        places[name] = where
    return tuple(places)


def _read_id(value: JSON, what: str) -> str:
    """An id, which may be written as a whole number."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ConfigError(f"{what} is no text")
    return str(value)


def _read_schema(row: JSONObject, where: str) -> bytes | None:
    schema = row.get("parameters")
    if schema is not None and not isinstance(schema, dict):
        raise ConfigError(f"{where}: `parameters` is no object")
    return orjson.dumps(schema) if schema else None


def _read_gold(row: JSONObject, where: str, known: Collection[str]) -> tuple[frozenset[str], ...]:
    gold = row.get("gold")
    if not isinstance(gold, list) or not gold:
        raise ConfigError(f"{where}: `gold` is no list of slots")
    return tuple(_read_slot(slot, where, known) for slot in gold)


def _read_slot(slot: JSON, where: str, known: Collection[str]) -> frozenset[str]:
    """The ids that meet a slot. Raises ConfigError when no ranking could."""
    ids = [
        _read_id(one, f"{where}: an id of `gold`")
        for one in (slot if isinstance(slot, list) else [slot])
    ]
    if not ids:
        raise ConfigError(f"{where}: a slot of `gold` is empty")
    met = frozenset(one for one in ids if one in known)
    if not met:
        raise ConfigError(f"{where}: no tool {ids[0]!r} in the catalogue")
    return met


def _read_steps(row: JSONObject, where: str, known: Collection[str]) -> tuple[str, ...]:
    tools = row.get("tools")
    if not isinstance(tools, list) or not tools:
        raise ConfigError(f"{where}: `tools` is no list of ids")
    steps = tuple(_read_id(tool, f"{where}: an id of `tools`") for tool in tools)
    unknown = [tool for tool in steps if tool not in known]
    if unknown:
        raise ConfigError(f"{where}: no tool {unknown[0]!r} in the catalogue")
    return steps


def _read_need(row: JSONObject, where: str) -> bool:
    need = row.get("needs_tool")
    if not isinstance(need, bool):
        raise ConfigError(f"{where}: `needs_tool` is neither true nor false")
    return need
