"""Streams by template: the same bytes and the same answer as when every event is read in full."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.stream.splice import Splicer
from proxy.stream.sse import Splitter
from proxy.stream.template import Template, learn

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt"}
_words = st.one_of(
    st.sampled_from(
        ["a", " b", '"', "\\", "\n", '"},"x":"', "é", "日本", "\u2028", "", '\\"', "\x7f"]
    ),
    st.text(max_size=6),
)
_padding = st.sampled_from([None, "", "aB3", "x" * 9, "no letter!"])


def chunk(text: str, padding: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": None}
    found = HEAD | {"choices": [choice], "usage": None} | more
    return found if padding is None else found | {"obfuscation": padding}


@st.composite
def events(draw: st.DrawFn) -> bytes:
    """One event, mostly a usual one, in one of the spellings that providers have."""
    made: dict[str, Any] = chunk(draw(_words), draw(_padding))
    match draw(st.integers(0, 12)):
        case 0:
            made["choices"][0]["delta"]["reasoning_content"] = draw(_words)
        case 1:
            made["id"] = draw(st.sampled_from(["other", "", None]))
        case 2:
            made["choices"][0]["logprobs"] = {"content": [{"token": "content"}]}
        case 3:
            made["choices"][0]["delta"] = {"role": "assistant", "content": draw(_words)}
        case 4:
            made["system_fingerprint"] = draw(st.sampled_from(["fp", None]))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    text = json.dumps(made, separators=separators, ensure_ascii=draw(st.booleans()))
    data = text.encode(errors="replace")
    frame = draw(st.sampled_from([b"data: %b\n\n", b"data:%b\n\n", b"data: %b\r\n\r\n"]))
    return frame % data


def run(stream: bytes, *, lessons: bool, usage: bool) -> tuple[bytes, Any]:
    splicer, splitter = Splicer(include_usage=usage), Splitter()
    splicer.start_round({"tool"}, ["tool"])
    if not lessons:
        splicer._lessons = 0
    out = b"".join([splicer.feed(frame) for frame in (*splitter.feed(stream), *splitter.finish())])
    return out, splicer.answer()


@given(st.lists(events(), max_size=12), st.booleans())
def test_streams_are_the_same_with_and_without(stream: list[bytes], usage: bool) -> None:
    """Neither a byte nor a word of the answer depends on what was learned."""
    whole = b"".join(stream)
    quick = run(whole, lessons=True, usage=usage)
    assert quick == run(whole, lessons=False, usage=usage)


def learned(**more: Any) -> Template:
    data = json.dumps(chunk("hello", **more), separators=(",", ":")).encode()
    template = learn(data, "hello", b"data: " + data + b"\n\n")
    assert template is not None
    return template


def match(template: Template, data: bytes) -> tuple[str, bytes] | None:
    (frame,) = Splitter().feed(b"data: " + data + b"\n\n")
    return template.match(frame)


@pytest.mark.parametrize("padding", [None, "aB3"])
def test_only_the_text_may_differ(padding: str | None) -> None:
    """Other words are matched, escaped ones, too; another id, an end or a second key are not."""
    template = learned(padding=padding)
    usual = json.dumps(chunk('so "it" goes\n', padding=padding), separators=(",", ":")).encode()
    found = match(template, usual)
    assert found == ('so "it" goes\n', b"data: " + usual + b"\n\n")
    for old, new in (
        (b"chatcmpl-1", b"chatcmpl-2"),
        (b'"finish_reason":null', b'"finish_reason":"stop"'),
        (b'goes\\n"', b'goes\\n","role":"assistant"'),
        (b"goes\\n", b"goes\n"),
        (b"goes\\n", b"goes\xff"),
        (b'so \\"it\\" goes\\n', b""),
    ):
        assert old in usual
        assert match(template, usual.replace(old, new)) is None


def test_padding_of_any_length_matches() -> None:
    """OpenAI's random letters differ from event to event; anything but letters is read in full."""
    template = learned(padding="abc")
    for padding, known in (("Zz", True), ("x" * 40, True), ("", False), ("a b", False)):
        data = json.dumps(chunk("hi", padding), separators=(",", ":")).encode()
        assert (match(template, data) is not None) is known


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"content":"a","choices":[{"delta":{"content":"a"}}]}', "a"),
        (b'{"choices":[{"delta":{"c\\u006fntent":"a"},"content":"a"}]}', "a"),
        (b'{"choices":[{"delta":{"content":"\\u0061"}}]}', "a"),
        (b'{"choices":[{"delta":{"content" :"a"}}]}', "a"),
        (b'{"choices":[{"delta":{"content":"a"}}],"obfuscation":3}', "a"),
    ],
    ids=["twice", "escaped key", "escaped text", "odd spacing", "odd padding"],
)
def test_what_bytes_cannot_tell_is_not_learned(data: bytes, text: str) -> None:
    """A chunk whose text cannot be pointed at for certain makes no template."""
    assert learn(data, text, b"data: " + data + b"\n\n") is None
