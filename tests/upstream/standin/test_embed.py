"""Tiny vectors."""

import base64
import math
from array import array

import pytest

from proxy.upstream.standin.embed import embed
from proxy.wire import JSON


@pytest.mark.parametrize(
    ("given", "count"), [("a", 1), (["a", "b"], 2), ([1, 2, 3], 1), ([[1, 2], [3]], 2)]
)
def test_every_input_gets_a_unit_vector(given: JSON, count: int) -> None:
    """Text or tokens, one or several."""
    data = embed({"model": "m", "input": given})["data"]
    assert [entry["index"] for entry in data] == list(range(count))
    assert all(math.isclose(math.hypot(*entry["embedding"]), 1.0) for entry in data)


def test_vectors_depend_on_the_input_alone() -> None:
    """Same text, same vector."""
    first, second, third = (e["embedding"] for e in embed({"input": ["a", "a", "b"]})["data"])
    assert first == second != third


def test_base64_is_the_same_vector() -> None:
    """The official SDK asks for it by default."""
    plain = embed({"input": "a", "dimensions": 3})["data"][0]["embedding"]
    coded = embed({"input": "a", "dimensions": 3, "encoding_format": "base64"})["data"][0]
    assert list(array("f", base64.b64decode(coded["embedding"]))) == pytest.approx(plain)


def test_usage_counts_the_inputs_tokens() -> None:
    """Tokens given as numbers count as they are."""
    assert embed({"input": [[1, 2], [3]]})["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
    assert embed({"input": "hello"})["usage"]["prompt_tokens"] == 1
