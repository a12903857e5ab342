"""Oversized tool results are cut the same way every time."""

import orjson

from proxy.triage.cap import Cap, cut_result
from tests.triage.talk import converse, step, user


def test_head_and_tail_stay() -> None:
    """A line between them says how much is missing and how to get it."""
    cuts = dict(Cap(300).cuts(converse([user("x"), *step(1, "a" * 900 + "z" * 100)]), (), "recall"))
    content = orjson.loads(cuts[2].body or b"")["content"]
    assert content.startswith("a" * 200 + "\n[… 705 of 1005 characters")
    assert "recall(2) returns them" in content
    assert content.endswith("c1_0")


def test_the_same_bytes_on_every_request() -> None:
    """Also from another worker."""
    talk = converse([user("x"), *step(1, "a" * 900)])
    cap = Cap(300)
    assert dict(cap.cuts(talk, (), None)) == dict(cap.cuts(talk, (), None))
    assert dict(cap.cuts(talk, (), None)) == dict(Cap(300).cuts(talk, (), None))


def test_short_results_and_those_cut_already_stay() -> None:
    """Nothing is cut twice."""
    talk = converse([user("x" * 900), *step(1, "a" * 900), *step(2, "b")])
    assert not dict(Cap(300).cuts(talk, {2}, None))


def test_text_parts_are_cut_and_pictures_are_not() -> None:
    """A result with a picture in it stays as it is."""
    text = {"type": "text", "text": "a" * 900}
    message = {"role": "tool", "tool_call_id": "c", "content": [text]}
    cut = cut_result(orjson.dumps(message), 300, 1, None)
    assert cut is not None
    assert "recall" not in cut.decode()
    message["content"] = [text, {"type": "image_url", "image_url": {"url": "http://a/b"}}]
    assert cut_result(orjson.dumps(message), 300, 1, None) is None
