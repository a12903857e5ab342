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
from tests.evals.conftest import TOOLS, Rows, write_lines

KNOWN = {"w", "r", "m"}


def test_a_set_is_read(folder: Path) -> None:
    """Tools keep their ids and get their groups; queries keep their slots."""
    catalogue = read_catalogue(folder)
    assert catalogue.ids == ("w", "r", "m")
    assert [tool.group for tool in catalogue.documents] == ["geo", "geo", ""]
    assert catalogue.documents[2].parameters == b'{"type":"object"}'
    assert read_queries(folder, KNOWN)[1].gold == (frozenset({"r"}), frozenset({"m"}))


def test_queries_of_several_tools_are_conversations(folder: Path) -> None:
    """Without conversations.jsonl the order of the slots is the order of use."""
    (conversation,) = read_conversations(folder, KNOWN)
    assert conversation.tools == ("r", "m")


def test_conversations_are_read(folder: Path) -> None:
    """With the file, nothing else is."""
    write_lines(folder / "conversations.jsonl", [{"task": "a", "tools": ["w", "r"]}])
    assert read_conversations(folder, KNOWN)[0].tools == ("w", "r")


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
        (b"1", "queries.jsonl line 1: not an object"),
        (b'{"gold": [["w"]]}', "queries.jsonl line 1: `query` is no text"),
        (b'{"query": "a"}', "queries.jsonl line 1: `gold` is no list of slots"),
        (b'{"query": "a", "gold": []}', "queries.jsonl line 1: `gold` is no list of slots"),
        (b'{"query": "a", "gold": [["w"], []]}', "line 1: a slot of `gold` is empty"),
        (b'{"query": "a", "gold": [null]}', "line 1: an id of `gold` is no text"),
        (b'{"query": "a", "gold": [["w"], ["x"]]}', "line 1: no tool 'x' in the catalogue"),
    ],
)
def test_mistakes_of_queries_are_named(folder: Path, line: bytes, complaint: str) -> None:
    """File, line and what is wrong: a figure of such a set would say nothing."""
    (folder / "queries.jsonl").write_bytes(line)
    with pytest.raises(ConfigError, match=complaint):
        read_queries(folder, KNOWN)


def test_one_known_id_meets_a_slot(folder: Path) -> None:
    """The others of the slot may be tools that this catalogue does not have."""
    write_lines(folder / "queries.jsonl", [{"query": "a", "gold": [["gone", "w"]]}])
    assert read_queries(folder, KNOWN)[0].gold == (frozenset({"w"}),)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": 7}, "line 1: `name` is no text"),
        ({"name": ""}, "line 1: `name` is empty"),
        ({"description": ["x"]}, "line 1: `description` is no text"),
        ({"parameters": [1]}, "line 1: `parameters` is no object"),
        ({"id": True}, "line 1: `id` is no text"),
        ({"id": "r"}, "line 2: the id 'r' is that of catalogue.jsonl line 1 too"),
    ],
)
def test_mistakes_of_catalogues_are_named(
    folder: Path, change: dict[str, object], complaint: str
) -> None:
    """Two tools of one id are a mistake too, as labels could mean either."""
    write_lines(folder / "catalogue.jsonl", [{**TOOLS[0], **change}, *TOOLS[1:]])
    with pytest.raises(ConfigError, match=complaint):
        read_catalogue(folder)


def test_ids_may_be_numbers_or_missing(folder: Path) -> None:
    """A name stands for a missing one."""
    write_lines(folder / "catalogue.jsonl", [{"id": 3, "name": "a"}, {"name": "b"}])
    write_lines(folder / "queries.jsonl", [{"query": "q", "gold": [[3], "b"]}])
    assert read_catalogue(folder).ids == ("3", "b")
    assert read_queries(folder, {"3", "b"})[0].gold == (frozenset({"3"}), frozenset({"b"}))


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"query": "hi"}, "`needs_tool` is neither true nor false"),
        ({"query": "hi", "needs_tool": "no"}, "`needs_tool` is neither true nor false"),
        ({"query": "hi", "needs_tool": 0}, "`needs_tool` is neither true nor false"),
        ({"query": "hi", "needs_tool": True, "lang": 3}, "`lang` is no text"),
    ],
)
def test_mistakes_of_messages_are_named(
    folder: Path, row: dict[str, object], complaint: str
) -> None:
    """A label that has to be guessed is none."""
    write_lines(folder / "queries.jsonl", [row])
    with pytest.raises(ConfigError, match=complaint):
        read_messages(folder)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"task": "a"}, "`tools` is no list of ids"),
        ({"task": "a", "tools": []}, "`tools` is no list of ids"),
        ({"task": "a", "tools": "w"}, "`tools` is no list of ids"),
        ({"task": "a", "tools": [None]}, "an id of `tools` is no text"),
        ({"tools": ["w"]}, "`task` is no text"),
        ({"task": "a", "tools": ["w", "nope"]}, "no tool 'nope' in the catalogue"),
    ],
)
def test_mistakes_of_conversations_are_named(
    folder: Path, row: dict[str, object], complaint: str
) -> None:
    """None is passed over."""
    write_lines(folder / "conversations.jsonl", [row])
    with pytest.raises(ConfigError, match=f"conversations.jsonl line 1: {complaint}"):
        read_conversations(folder, KNOWN)


def test_empty_files_are_named(folder: Path) -> None:
    """Nothing measured must not look like a bad figure."""
    nothing: Rows = []
    for name in ("catalogue.jsonl", "queries.jsonl", "conversations.jsonl"):
        write_lines(folder / name, nothing)
    for read in (read_catalogue, read_messages):
        with pytest.raises(ConfigError, match="there is nothing in it"):
            read(folder)
    for ask in (read_queries, read_conversations):
        with pytest.raises(ConfigError, match="there is nothing in it"):
            ask(folder, KNOWN)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """An empty folder is no set."""
    with pytest.raises(ConfigError, match=r"cannot read .*catalogue\.jsonl"):
        read_catalogue(tmp_path)
