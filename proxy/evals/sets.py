"""A folder of labelled questions comes in; a checked set of tools and queries goes out."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from proxy.errors import ConfigError
from proxy.tools.document import Document
from proxy.tools.group import learn_groups
from proxy.wire import JSONObject

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
    """Read `catalogue.jsonl`: {id, name, description, parameters?}."""
    rows = [(row, where) for row, where in _rows(folder / CATALOGUE)]
    names = [_text(row, "name", where) for row, where in rows]
    documents = [
        Document(name, group, str(row.get("description") or ""), _schema(row))
        for name, group, (row, _) in zip(names, learn_groups(names), rows, strict=True)
    ]
    ids = [str(row.get("id", name)) for name, (row, _) in zip(names, rows, strict=True)]
    return Catalogue(folder.resolve().name, tuple(documents), tuple(ids))


def read_queries(folder: Path) -> list[Labelled]:
    """Read `queries.jsonl`: {query, gold: [[id, …], …]}."""
    return [
        Labelled(_text(row, "query", where), _gold(row, where))
        for row, where in _rows(folder / QUERIES)
    ]


def read_conversations(folder: Path) -> list[Conversation]:
    """Read `conversations.jsonl`: {task, tools}; without it, queries that need several tools."""
    if (folder / CONVERSATIONS).is_file():
        return [
            Conversation(_text(row, "task", where), tuple(map(str, row.get("tools") or ())))
            for row, where in _rows(folder / CONVERSATIONS)
        ]
    return [
        Conversation(query.text, tuple(min(slot) for slot in query.gold))
        for query in read_queries(folder)
        if len(query.gold) > 1
    ]


def read_messages(folder: Path) -> list[Message]:
    """Read `queries.jsonl`: {query, needs_tool, lang?}."""
    return [
        Message(_text(row, "query", where), bool(row.get("needs_tool")), str(row.get("lang", "")))
        for row, where in _rows(folder / QUERIES)
    ]


def _rows(path: Path) -> Iterator[tuple[JSONObject, str]]:
    """The objects of a JSONL file, each with where it stands."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        where = f"{path.name} line {number}"
        try:
            row = orjson.loads(line) if line.strip() else None
        except orjson.JSONDecodeError as error:
            raise ConfigError(f"{where}: not JSON: {error.msg}") from error
        if row is None:
            continue
        if not isinstance(row, dict):
            raise ConfigError(f"{where}: not an object")
        yield row, where


def _text(row: JSONObject, key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise ConfigError(f"{where}: `{key}` is no text")
    return value


def _gold(row: JSONObject, where: str) -> tuple[frozenset[str], ...]:
    gold = row.get("gold")
    if not isinstance(gold, list) or not gold:
        raise ConfigError(f"{where}: `gold` is no list of slots")
    return tuple(
        frozenset(map(str, slot)) if isinstance(slot, list) else frozenset((str(slot),))
        for slot in gold
    )


def _schema(row: JSONObject) -> bytes | None:
    schema = row.get("parameters")
    return orjson.dumps(schema) if schema else None
