"""Ordinary chunks are recognised, and JSON survives reading and writing."""

import json

import pytest

from proxy.stream.chunk import (
    NULL_USAGE,
    ROLE,
    cut_field,
    decode_text,
    dump,
    load,
    load_object,
)
from proxy.wire import JSON


def choice(**fields: JSON) -> bytes:
    """A chunk's data with one choice."""
    return json.dumps({"id": "a", "choices": [{"index": 0} | fields]}).encode()


@pytest.mark.parametrize(
    "data",
    [
        choice(delta={"content": "x"}, finish_reason=None, logprobs={"content": []}),
        choice(delta={"content": "x"}, finish_reason="", content_filter_results={}),
        choice(delta={"reasoning_content": "x", "content": None, "tool_calls": None}),
        choice(delta={"reasoning": "x", "reasoning_details": [{"type": "reasoning.text"}]}),
        choice(delta={"tool_calls": [{"index": 3, "function": {"arguments": "x"}}]}),
        b'{"choices":[{"delta":{"role":"assistant"}}],"usage":null,"unknown":{"usage":1}}',
    ],
)
def test_words_and_arguments_are_ordinary(data: bytes) -> None:
    """Text, reasoning, further arguments, and fields that nobody must act on."""
    decode_text(data)


@pytest.mark.parametrize(
    "data",
    [
        choice(delta={"content": "x"}, finish_reason="stop"),
        choice(delta={"content": "x", "annotations": []}),
        choice(delta={"content": ["x"]}),
        choice(delta={"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": ""}}]}),
        choice(delta={"tool_calls": [{"index": 0, "function": {"name": "a", "arguments": ""}}]}),
        choice(delta={"tool_calls": [{"index": 0, "function": {"arguments": {}}}]}),
        choice(delta={"tool_calls": [{"function": {"arguments": ""}}]}),
        choice(delta={"tool_calls": [{"index": 0, "function": {"arguments": ""}, "sig": 1}]}),
        choice(delta={"tool_calls": [{"index": 0, "function": {"arguments": "", "sig": 1}}]}),
        choice(delta={"function_call": {}}),
        choice(delta={"content": "x"}, message={"content": "x"}),
        choice(delta={"content": "x"}, index=1),
        choice(delta=None),
        b'{"choices":[]}',
        b'{"choices":[{"delta":{}},{"delta":{}}]}',
        b'{"choices":[{"delta":{}}],"usage":{}}',
        b'{"choices":[{"delta":{}}],"error":{"message":"x"}}',
        b'{"choices":[{"delta":{"content":"\xff"}}]}',
        b'{"choices":[{"delta":{"content":"\\ud83d"}}]}',
        b'{"choices":[{"delta":{}}],"deep":' + b"[" * 9999 + b"]" * 9999 + b"}",
        b"[DONE]",
        b"",
    ],
)
def test_whatever_somebody_must_look_at_is_not(data: bytes) -> None:
    """Calls, ends, usage, errors, further choices, unknown deltas and what is no chunk at all."""
    with pytest.raises((ValueError, RecursionError)):
        decode_text(data)


@pytest.mark.parametrize(
    "data",
    [
        b'{"big":36893488147419103232,"float":1.0,"text":"\xc3\xbc","half":null}',
        b'{"half":"\\ud83d"}',
    ],
)
def test_json_survives(data: bytes) -> None:
    """Integers of any size and lone surrogates keep their spelling."""
    assert dump(load(data)) == data


def test_python_json_is_read_and_mended() -> None:
    """Some servers write NaN or raw control characters, which is no JSON; what goes out is."""
    assert dump(load(b'{"logprob":NaN}')) == b'{"logprob":null}'
    assert load(b'["a raw\ttab"]') == ["a raw\ttab"]


@pytest.mark.parametrize("data", [b"", b": ping", b"{", b'"\xff"', b"[" * 99999])
def test_what_is_no_json_is_nothing(data: bytes) -> None:
    """Nothing that an upstream sends raises."""
    assert load(data) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [('{"a":1}', {"a": 1}), ("", None), ('{"a":', None), ("[1]", None), ("{}{}", None)],
)
def test_arguments_are_whole_once_they_are_an_object(text: str, value: JSON) -> None:
    """Nothing else counts as the arguments of a call."""
    assert load_object(text) == value


@pytest.mark.parametrize(
    ("data", "cut"),
    [
        (b'{"a":1,"usage":null,"b":2}', b'{"a":1,"b":2}'),
        (b'{"a": 1, "usage": null}', b'{"a": 1}'),
        (b'{"usage":null,"a":1}', None),
        (b'{"x":{"usage":1},"usage":null}', None),
        (b'{"text":"\\"usage\\":null","usage":null}', b'{"text":"\\"usage\\":null"}'),
        (b'{"a":1,"usage":\tnull}', None),
    ],
)
def test_a_field_is_cut_out_only_where_it_is_certain(data: bytes, cut: bytes | None) -> None:
    """Text that looks like the field is escaped; two keys of that name need a parser."""
    assert cut_field(data, NULL_USAGE) == cut


@pytest.mark.parametrize(
    ("data", "cut"),
    [
        (b'{"role":"assistant","content":"x"}', b'{"content":"x"}'),
        (b'{"role": "assistant", "content": "x"}', b'{"content": "x"}'),
        (b'{"content":"x","role":"assistant"}', b'{"content":"x"}'),
        (b'{"content": "x", "role": "assistant"}', b'{"content": "x"}'),
        (b'{"content":"x","role":"tool"}', None),
    ],
)
def test_a_repeated_role_is_cut_out_wherever_it_stands(data: bytes, cut: bytes | None) -> None:
    """In front of the text or behind it, with spaces or without."""
    assert cut_field(data, ROLE) == cut
