"""An embeddings request goes in; tiny vectors that only depend on the input come out."""

import base64
import math
from array import array

import xxhash

from proxy.tools.tokens import count_tokens
from proxy.wire import JSON, JSONObject

DIMENSIONS = 8


def embed(body: JSONObject) -> JSONObject:
    """Answer an embeddings request: one unit vector per input."""
    given = body.get("input")
    inputs = given if isinstance(given, list) and not _is_tokens(given) else [given]
    size = body.get("dimensions") or DIMENSIONS
    data = [
        {"object": "embedding", "index": index, "embedding": _encode(_vector(item, size), body)}
        for index, item in enumerate(inputs)
    ]
    tokens = sum(
        len(item) if isinstance(item, list) else count_tokens(str(item)) for item in inputs
    )
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": body.get("model"), "data": data, "usage": usage}


def _is_tokens(given: list[JSON]) -> bool:
    return bool(given) and isinstance(given[0], int)


def _vector(item: JSON, size: int) -> list[float]:
    raw = [xxhash.xxh3_64_intdigest(str(item).encode(), seed) / 2**63 - 1 for seed in range(size)]
    length = math.sqrt(sum(value * value for value in raw)) or 1.0
    return [value / length for value in raw]


def _encode(vector: list[float], body: JSONObject) -> JSON:
    if body.get("encoding_format") == "base64":
        return base64.b64encode(array("f", vector).tobytes()).decode()
    return vector
