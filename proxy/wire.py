"""The names for foreign JSON: what other programs sent us and may have got wrong."""

import json
from typing import Any, TypeAlias

import orjson

JSON: TypeAlias = Any
JSONObject: TypeAlias = dict[str, Any]

Headers: TypeAlias = list[tuple[bytes, bytes]]
"""Raw HTTP headers in wire order; names may have any case until they are compared."""


def dump(value: JSON) -> bytes:
    """Compact JSON, also of half an emoji, which some models stream and orjson refuses."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()
