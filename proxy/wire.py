"""The names for foreign JSON: what other programs sent us and may have got wrong."""

import json
from typing import Any, TypeAlias

import orjson

JSON: TypeAlias = Any
JSONObject: TypeAlias = dict[str, Any]

Headers: TypeAlias = list[tuple[bytes, bytes]]
"""Raw HTTP headers in wire order; names may have any case until they are compared."""


class Repeated(Headers):
    """The headers of a head that its connection has sent before, but for the body's length.

    Whoever draws something from them alone may keep it in `notes`, for the next request: under a
    name of their own, and nothing that could change. `length` is the body's, in bytes.
    """

    __slots__ = ("length", "notes")

    def __init__(self, fields: Headers, length: int, notes: dict[str, Any]) -> None:
        super().__init__(fields)
        self.length = length
        self.notes = notes


def dump(value: JSON) -> bytes:
    """Compact JSON, also of half an emoji, which some models stream and orjson refuses."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()
