"""The names for foreign JSON: what other programs sent us and may have got wrong."""

from typing import Any, TypeAlias

JSON: TypeAlias = Any
JSONObject: TypeAlias = dict[str, Any]

Headers: TypeAlias = list[tuple[bytes, bytes]]
"""Raw HTTP headers in wire order; names may have any case until they are compared."""
