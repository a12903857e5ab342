"""Vectors are computed once per text and survive a restart."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from proxy.tools.adapter import Matrix
from proxy.tools.document import Document
from proxy.tools.vectors import QueryMemo, VectorStore, encode_documents


class Letters:
    """Counts letters: a model whose vectors can be told by looking."""

    name = "letters"
    size = 26
    adapter: Path | None = None

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Matrix:
        self.asked += texts
        rows = [[text.lower().count(chr(97 + at)) for at in range(26)] for text in texts]
        return np.array(rows, dtype=np.float32)


def test_a_text_is_encoded_once() -> None:
    """The same text asked for again costs nothing."""
    model = Letters()
    store = VectorStore(model, None, 10_000)
    first = store.encode(["abc", "b", "abc"])
    assert (first == store.encode(["abc", "b", "abc"])).all()
    assert model.asked == ["abc", "b"]


def test_vectors_survive_a_restart(tmp_path: Path) -> None:
    """A second process reads what the first one computed."""
    path = tmp_path / "new" / "vectors.bin"
    VectorStore(Letters(), path, 10_000).encode(["abc"])
    model = Letters()
    assert VectorStore(model, path, 10_000).encode(["abc"])[0, :3].tolist() == [1, 1, 1]
    assert model.asked == []


def test_the_file_stays_small(tmp_path: Path) -> None:
    """Above its limit the file keeps its newer half."""
    path = tmp_path / "vectors.bin"
    record = 16 + 2 * 26
    VectorStore(Letters(), path, 10**6).encode([f"text {n}" for n in range(40)])
    VectorStore(Letters(), path, 10 * record)
    assert path.stat().st_size <= 10 * record


def test_memory_is_bounded_too() -> None:
    """What is told of it grows with each text, and stops at the limit."""
    record = 16 + 2 * 26
    store = VectorStore(Letters(), None, 10 * record)
    assert store.memory_bytes == 0
    store.encode(["a", "b", "a"])
    assert store.memory_bytes == 2 * record
    store.encode([f"text {n}" for n in range(40)])
    assert store.memory_bytes == 10 * record


def test_a_foreign_file_is_started_afresh(tmp_path: Path) -> None:
    """A file that holds no whole records is no reason to fail."""
    path = tmp_path / "vectors.bin"
    path.write_bytes(b"something else")
    assert VectorStore(Letters(), path, 10_000).encode(["a"])[0, 0] == 1


def test_long_queries_are_cut_and_remembered() -> None:
    """A pasted log costs no more than a long question, and only once."""
    model = Letters()
    memo = QueryMemo(model)
    assert (memo.encode("a " * 200_000) == memo.encode("a " * 200_000)).all()
    assert len(model.asked) == 1
    assert len(model.asked[0]) <= 1_000


def test_documents_become_unit_vectors() -> None:
    """Tools are compared by direction, whatever the length of their text."""
    store = VectorStore(Letters(), None, 10_000)
    documents = [
        Document("abc", "", "Aa bb. Cc", None),
        Document("z", "", "", b'{"properties":{}}'),
    ]
    vectors = encode_documents(documents, store, lambda: False, lambda _seconds: None)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)


def test_stopping_ends_a_long_computation() -> None:
    """A gateway that shuts down does not wait for a large catalogue."""
    store = VectorStore(Letters(), None, 10_000)
    with pytest.raises(RuntimeError, match="stopped"):
        encode_documents([Document("a", "", "", None)], store, lambda: True, lambda _seconds: None)
