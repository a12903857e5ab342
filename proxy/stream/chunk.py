"""The data of one event comes in; a typed text chunk, or its whole JSON, goes out.

Nearly every event of a stream is a piece of text. Its type is written down here, and decoding
against that type both finds the text and proves that the event holds nothing else that matters.
"""

import json
from typing import Annotated, Literal

import msgspec

from proxy.wire import JSON


class Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A delta of words alone; any other field with a value makes the chunk no text chunk."""

    role: str | None = None
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: None = None
    function_call: None = None
    audio: None = None


class Choice(msgspec.Struct, gc=False):
    delta: Delta
    index: Literal[0] = 0
    finish_reason: Literal[""] | None = None
    message: None = None


class TextChunk(msgspec.Struct, gc=False):
    """A chunk with one choice that only says something: no calls, no end, no usage, no error."""

    choices: Annotated[list[Choice], msgspec.Meta(min_length=1, max_length=1)]
    id: str | None = None
    created: int | float | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    usage: msgspec.UnsetType | None = msgspec.UNSET
    error: None = None


_TEXT = msgspec.json.Decoder(TextChunk)
_ANY = msgspec.json.Decoder()


def read_text(data: bytes) -> TextChunk | None:
    """The chunk when it is a text chunk, else None."""
    try:
        return _TEXT.decode(data)
    except (ValueError, RecursionError):
        return None


def load(data: bytes) -> JSON:
    """Any JSON with integers of any size and lone surrogates; None when it is none."""
    try:
        return _ANY.decode(data)
    except msgspec.DecodeError:
        return _load_leniently(data)
    except RecursionError:
        return None


def _load_leniently(data: bytes) -> JSON:
    try:
        return json.loads(data, strict=False)
    except (ValueError, RecursionError):
        return None


def dump(value: JSON) -> bytes:
    """Compact JSON of what `load` read."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def load_object(text: str) -> JSON:
    """The object that a call's arguments spell, None while they don't."""
    value = load(text.encode(errors="surrogatepass")) if text else None
    return value if isinstance(value, dict) else None


def drop_null_usage(data: bytes) -> bytes | None:
    """A text chunk's data without its `"usage":null`, None when bytes alone cannot tell.

    Quotes inside strings are escaped, so a single `"usage"` in a chunk that has that key is it.
    """
    at = data.rfind(b'"usage"')
    if at != data.find(b'"usage"'):
        return None
    for field in (b',"usage":null', b', "usage": null'):
        start = at - field.index(b'"')
        if data.startswith(field, start):
            return data[:start] + data[start + len(field) :]
    return None
