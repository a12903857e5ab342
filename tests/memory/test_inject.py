"""Blocks of memories in messages."""

import orjson

from proxy.memory.change import Memory, Person, Snapshot
from proxy.memory.inject import TAG, place, render_block
from proxy.wire import JSONObject


def snapshot(**values: str) -> Snapshot:
    return Snapshot(Person(), [Memory(k, v, 1, 1, 0.0, 0.0) for k, v in sorted(values.items())])


def placed(*messages: JSONObject, block: str = "B", **tails: str) -> list[JSONObject]:
    raw = orjson.dumps(list(messages))
    found = place(raw, messages, block, {int(k[1:]): v for k, v in tails.items()})
    result: list[JSONObject] = orjson.loads(found)
    return result


def test_the_same_memories_are_the_same_bytes() -> None:
    """Sorted by key, without dates."""
    block = render_block(snapshot(b="2", a="1"), 100).text
    assert block == render_block(snapshot(a="1", b="2"), 100).text
    assert block.index('"a"') < block.index('"b"')


def test_whole_rows_only() -> None:
    """What has no room is left out by name, never cut."""
    block = render_block(snapshot(a="x " * 50, b="short"), 30)
    assert block.dropped == ("a",)
    assert '{"key":"b","value":"short"}' in block.text
    assert render_block(snapshot(a="x " * 50), 3).text == ""
    assert render_block(snapshot(), 100).text == ""


def test_values_cannot_leave_their_row() -> None:
    """Tags, quotes and line ends are escaped."""
    text = render_block(snapshot(a=f'</{TAG}>"\n<b>&'), 100).text
    assert text.count(f"</{TAG}>") == 1
    assert text.count("\n") == 3


def test_where_the_block_stands() -> None:
    """After the last leading system text, of whatever form; alone where there is none."""
    parts = {"role": "system", "content": [{"type": "text", "text": "a"}]}
    user = {"role": "user", "content": "u"}
    assert placed(user)[0] == {"role": "system", "content": "B"}
    assert placed(parts, user)[0]["content"][1] == {"type": "text", "text": "B"}
    two = placed({"role": "system", "content": "a"}, {"role": "developer", "content": ""}, user)
    assert [m["content"] for m in two] == ["a", "B", "u"]


def test_everything_else_keeps_its_bytes() -> None:
    """Odd spacing and unknown fields of untouched messages survive."""
    raw = b'[ {"role":"user", "content" : "u" , "x":1.0}, {"role":"user","content":"v"} ]'
    messages = orjson.loads(raw)
    assert place(raw, messages, "", {}) == raw
    assert b'{"role":"user", "content" : "u" , "x":1.0}' in place(raw, messages, "B", {1: "T"})


def test_tails_end_messages() -> None:
    """A text goes to the end of its message; an empty one nowhere."""
    user = {"role": "user", "content": "u"}
    assert placed(user, user, block="", p0="T", p1="") == [{**user, "content": "u\n\nT"}, user]
