"""What was taken out comes back, as data."""

import orjson
import pytest

from proxy.triage.recall import BOUNDARY, Recall, choose_name, describe, has_recall, recall_tool
from tests.triage.talk import converse, said, step, user

TALK = converse([user("One"), *step(1, "x" * 400), said("Done"), user("Two")])


def test_a_part_comes_back_whole() -> None:
    """With its boundary stated, without ids and signatures."""
    reply = orjson.loads(Recall(TALK, "recall", 10_000).answer('{"n": 2}'))
    assert reply["note"] == BOUNDARY
    record = orjson.loads(reply["record"])
    assert record[0]["calls"] == [{"name": "look", "arguments": '{"at":1,"place":0}'}]
    assert record[1]["role"] == "tool"
    assert "next_offset" not in reply


def test_a_long_part_comes_in_pieces() -> None:
    """Together they are the whole."""
    recall, offset, text = Recall(TALK, "recall", 100), 0, ""
    while True:
        reply = orjson.loads(recall.answer(orjson.dumps({"n": "[2]", "offset": offset}).decode()))
        text += reply["record"]
        if "next_offset" not in reply:
            break
        offset = reply["next_offset"]
    assert orjson.loads(text)[1]["content"].startswith("xxx")


@pytest.mark.parametrize("arguments", ["", "{}", "no json", '{"n": 99}', '{"n": true}', "[]"])
def test_nonsense_is_answered(arguments: str) -> None:
    """The model hears what is possible."""
    assert "from 1 to 4" in Recall(TALK, "recall", 100).answer(arguments)


def test_a_bare_number_will_do() -> None:
    """Models are loose with arguments."""
    assert orjson.loads(Recall(TALK, "recall", 100).answer("1"))["n"] == 1


def test_the_name_is_free() -> None:
    """A client's own recall tool keeps its name; without tools there is none of ours."""
    assert choose_name(None) is None
    assert choose_name(b"[]") is None
    assert choose_name(b'[{"function":{"name":"look"}}]') == "recall"
    assert choose_name(b'[{"function":{"name":"recall"}}]') == "recall_part"
    assert recall_tool("recall") == recall_tool("recall")


def test_recalled_parts_are_recognised() -> None:
    """In the hidden messages of a turn."""
    text = Recall(TALK, "recall", 100).answer("1")
    assert has_recall([{"role": "tool", "content": text}])
    assert not has_recall([said(BOUNDARY)])


def test_pictures_are_named() -> None:
    """A judge that saw an empty message would drop it, and a recall cannot show one."""
    url = {"url": "data:image/png;base64,AAAA"}
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": url}]
    assert describe({"role": "user", "content": parts})["content"] == "Look:\n[image_url]"
    assert describe({"role": "user", "content": parts[1:]})["content"] == "[image_url]"


def test_calls_of_custom_tools_are_told() -> None:
    """With their input; what is no call at all is harmless."""
    custom = {"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    told = describe({"role": "assistant", "content": None, "tool_calls": [custom, 7]})
    assert told["calls"] == [{"name": "sh", "arguments": "ls"}, {"name": None, "arguments": None}]
    assert "calls" not in describe({"role": "assistant", "content": "x", "tool_calls": {"a": 1}})
