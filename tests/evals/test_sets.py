"""Labelled sets are read strictly: a mistake is one clear line."""

from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.evals.sets import (
    read_catalogue,
    read_conversations,
    read_messages,
    read_queries,
)
from tests.evals.conftest import write_lines


def test_a_set_is_read(folder: Path) -> None:
    """Tools keep their ids and get their groups; queries keep their slots."""
    catalogue = read_catalogue(folder)
    assert catalogue.ids == ("w", "r", "m")
    assert [tool.group for tool in catalogue.documents] == ["geo", "geo", ""]
    assert catalogue.documents[2].parameters == b'{"type":"object"}'
    assert read_queries(folder)[1].gold == (frozenset({"r"}), frozenset({"m"}))


def test_queries_of_several_tools_are_conversations(folder: Path) -> None:
    """Without conversations.jsonl the order of the slots is the order of use."""
    (conversation,) = read_conversations(folder)
    assert conversation.tools == ("r", "m")


def test_conversations_are_read(folder: Path) -> None:
    """With the file, nothing else is."""
    write_lines(folder / "conversations.jsonl", [{"task": "a", "tools": ["w", "r"]}])
    assert read_conversations(folder)[0].tools == ("w", "r")


def test_messages_are_read(folder: Path) -> None:
    """Labels for abstention: text, need, language."""
    rows: list[dict[str, object]] = [{"query": "hi", "needs_tool": False, "lang": "en"}]
    write_lines(folder / "queries.jsonl", rows)
    (message,) = read_messages(folder)
    assert (message.text, message.needs_tool, message.language) == ("hi", False, "en")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{oops", "queries.jsonl line 1: not JSON"),
        (b"[1]", "queries.jsonl line 1: not an object"),
        (b'{"gold": [["w"]]}', "queries.jsonl line 1: `query` is no text"),
        (b'{"query": "a"}', "queries.jsonl line 1: `gold` is no list of slots"),
        (b'{"query": "a", "gold": []}', "queries.jsonl line 1: `gold` is no list of slots"),
    ],
)
def test_mistakes_are_named(folder: Path, line: bytes, complaint: str) -> None:
    """File, line and what is wrong."""
    (folder / "queries.jsonl").write_bytes(line)
    with pytest.raises(ConfigError, match=complaint):
        read_queries(folder)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """An empty folder is no set."""
    with pytest.raises(ConfigError, match=r"cannot read .*catalogue\.jsonl"):
        read_catalogue(tmp_path)
