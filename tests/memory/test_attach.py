"""How artifacts travel."""

import orjson
import pytest

from proxy.memory.attach import Tail, attachment, extend, render_comments, render_events

UPDATE = {"type": "update", "key": "city", "value": "Rome", "token_count": 1, "request_id": "r"}
ERROR = {
    "type": "error",
    "key": "system",
    "error_type": "would_exceed",
    "token_count": 10,
    "total_tokens": 110,
    "token_limit": 100,
    "request_id": "r",
}
STREAM = (
    b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{}}\n\ndata: [DONE]\n\n'
)


def test_librechats_error_is_json_in_json() -> None:
    """LibreChat's clients parse the error out of the value."""
    memory = attachment(ERROR, "c")["memory"]
    assert memory["key"] == "system"
    assert orjson.loads(memory["value"]) == {
        "errorType": "would_exceed",
        "tokenCount": 10,
        "totalTokens": 110,
        "tokenLimit": 100,
    }


def test_a_delete_names_its_key_only() -> None:
    """What was deleted is not repeated."""
    deleted = {"type": "delete", "key": "city", "old_value": "Rome", "request_id": "r"}
    assert attachment(deleted, None)["memory"] == {"key": "city", "type": "delete"}


def test_comments_and_events_are_frames() -> None:
    """One line each, with the blank line that ends a frame."""
    assert render_comments([UPDATE]).startswith(b": usher-memory {")
    assert render_events([UPDATE], "c").startswith(b"event: attachment\ndata: {")
    assert render_events([UPDATE], "c").endswith(b"}\n\n")


@pytest.mark.parametrize("size", [1, 7, 60, 10_000])
def test_a_stream_without_artifacts_keeps_its_bytes(size: int) -> None:
    """However it is cut, nothing is changed, and the finish waits for the release."""
    tail, out = Tail(), b""
    for start in range(0, len(STREAM), size):
        out += tail.feed(STREAM[start : start + size])
        if tail.waits:
            assert b"stop" not in out
            out += tail.release(b"", [])
    assert out + tail.release(b"", []) == STREAM


def test_artifacts_go_onto_the_finish() -> None:
    """The comment stands before it, the field on it, the rest behind it is untouched."""
    tail = Tail()
    before = tail.feed(STREAM)
    after = tail.release(b": x\n\n", [UPDATE])
    assert after.startswith(b": x\n\ndata: ")
    finish = orjson.loads(after.split(b"\n\n")[1][6:])
    assert finish["usher"] == {"memory": [UPDATE]}
    assert before + after.partition(b"\n\n")[2].partition(b"\n\n")[2] == (
        STREAM.partition(b"\n\n")[0] + b"\n\n" + STREAM.split(b"\n\n", 2)[2]
    )


def test_a_stream_that_breaks_off() -> None:
    """Without a finish nothing is added, and what came is passed on."""
    tail = Tail()
    out = tail.feed(STREAM[:100])
    assert out + tail.release(b"", [UPDATE]) == STREAM[:100]


def test_a_reply_keeps_our_other_facts() -> None:
    """The plan of x-usher-explain stays beside the artifacts."""
    assert extend({"usher": {"a": 1}}, [UPDATE])["usher"] == {"a": 1, "memory": [UPDATE]}
