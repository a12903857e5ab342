"""The data of one event comes in; a typed text chunk, or its whole JSON, goes out.

Nearly every event of a stream is a piece of text or of a call's arguments. Its type is written
down here: decoding against it finds the text and proves that nothing else in there matters.
"""

import json
from typing import Annotated, Literal, NamedTuple

import msgspec

from proxy.wire import JSON


class Function(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    arguments: str
    name: Literal[""] | None = None


class Piece(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A further piece of a call's arguments: what a fragment is that opens no call."""

    index: int
    function: Function
    id: Literal[""] | None = None
    type: str | None = None


class Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A delta of words or arguments; a value in any other field makes the chunk no text chunk."""

    role: str | None = None
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[JSON] | None = None
    refusal: str | None = None
    tool_calls: Annotated[list[Piece], msgspec.Meta(max_length=1)] | None = None
    function_call: None = None
    audio: None = None


class Choice(msgspec.Struct, gc=False):
    delta: Delta
    index: Literal[0] = 0
    finish_reason: Literal[""] | None = None
    message: None = None


class TextChunk(msgspec.Struct, gc=False):
    """A chunk with one choice that only says something: no new call, end, usage or error."""

    choices: tuple[Choice]
    id: str | None = None
    created: int | float | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    usage: msgspec.UnsetType | None = msgspec.UNSET
    error: None = None


decode_text = msgspec.json.Decoder(TextChunk).decode
"""Raises ValueError or RecursionError for whatever is no text chunk."""
_ANY = msgspec.json.Decoder()


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
    value = load(text.encode(errors="surrogatepass"))
    return value if isinstance(value, dict) else None


class Field(NamedTuple):
    """A field as it may be spelled in a chunk, comma included, with the key's offset in each."""

    key: bytes
    spellings: tuple[tuple[int, bytes], ...]


NULL_USAGE = Field(b'"usage"', ((1, b',"usage":null'), (2, b', "usage": null')))
ROLE = Field(
    b'"role"',
    (
        (0, b'"role":"assistant",'),
        (0, b'"role": "assistant", '),
        (1, b',"role":"assistant"'),
        (2, b', "role": "assistant"'),
    ),
)


def cut_field(data: bytes, field: Field) -> bytes | None:
    """A text chunk's data without a field that it has; None when bytes alone cannot tell.

    Quotes inside strings are escaped, so a key that stands there once in quotes is that field.
    """
    at = data.rfind(field.key)
    if at != data.find(field.key):
        return None
    for offset, spelling in field.spellings:
        if data.startswith(spelling, at - offset):
            return data[: at - offset] + data[at - offset + len(spelling) :]
    return None
