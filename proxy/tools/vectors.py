"""Texts go in; their sentence vectors come out, computed once and kept by content."""

import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from proxy.tools.adapter import Matrix, read_adapter
from proxy.tools.document import Document, read_parameter_names
from proxy.tools.text import spaced

KEY_BYTES = 16
BATCH = 4
"""Texts encoded in one go: small, so that requests get the interpreter in between."""
QUERY_CHARS, QUERIES = 1_000, 512
"""Read of one query; remembered queries."""
NAME_DISCOUNT = 0.5
"""A tool's bare name counts half."""
_BRIEF, _LONG, _PARAMETERS = 150, 300, 20


class Encoder(Protocol):
    """A sentence model: texts in, one vector of length one for each out.

    `adapter` is the file of the turn that queries get, if there is one for this model.
    """

    name: str
    size: int
    adapter: Path | None

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Encode texts; may be called from two threads."""


class VectorStore:
    """Vectors by the hash of their text and model: the newest in memory, all in one file.

    The file is a row of fixed-size records (key, float16 vector) that is only appended to; when it
    outgrows `max_bytes` its newer half is kept. A torn or foreign file is started afresh.
    """

    def __init__(self, encoder: Encoder, path: Path | None, max_bytes: int) -> None:
        self.size = encoder.size
        self._encoder = encoder
        self._path = path
        self._record = KEY_BYTES + 2 * encoder.size
        self._most = max(max_bytes // self._record, 1)
        self._known: OrderedDict[bytes, bytes] = OrderedDict()
        self._known.update(self._read())

    @property
    def memory_bytes(self) -> int:
        """What is in memory, as the file counts it."""
        return len(self._known) * self._record

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Vectors of texts, from the store where they are known."""
        keys = [self._key(text) for text in texts]
        missing = list(dict.fromkeys(k for k in keys if k not in self._known))
        by_key = dict(zip(keys, texts, strict=True))
        found = {key: self._known[key] for key in keys if key in self._known}
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            vectors = self._encoder.encode([by_key[key] for key in batch]).astype(np.float16)
            fresh = {k: v.tobytes() for k, v in zip(batch, vectors, strict=True)}
            found |= fresh
            self._remember(fresh)
        rows = b"".join(found[key] for key in keys)
        return np.frombuffer(rows, np.float16).reshape(len(keys), -1).astype(np.float32)

    def _key(self, text: str) -> bytes:
        named = f"{self._encoder.name}\n{text}".encode(errors="replace")
        return hashlib.sha256(named).digest()[:KEY_BYTES]

    def _remember(self, fresh: dict[bytes, bytes]) -> None:
        self._known.update(fresh)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        if self._path is not None:
            self._append(b"".join(key + row for key, row in fresh.items()))

    def _append(self, records: bytes) -> None:
        """Append in one write, so that two processes can share the file."""
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, records)
        finally:
            os.close(descriptor)

    def _read(self) -> Iterator[tuple[bytes, bytes]]:
        if self._path is None or not self._path.is_file():
            return
        raw = self._path.read_bytes()
        if len(raw) % self._record:
            self._path.unlink()
            return
        if len(raw) > self._most * self._record:
            raw = raw[-(self._most // 2 + 1) * self._record :]
            self._path.write_bytes(raw)
        for at in range(0, len(raw), self._record):
            yield raw[at : at + KEY_BYTES], raw[at + KEY_BYTES : at + self._record]


def clip_query(query: str) -> str:
    """What is read of a query: its beginning, without line breaks."""
    return " ".join(query[: 2 * QUERY_CHARS].split())[:QUERY_CHARS]


class QueryMemo:
    """Remembers the vectors of recent queries: a conversation asks for its old turns again."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        path = encoder.adapter
        self._adapter = read_adapter(path, encoder.size) if path is not None else None
        self._known: OrderedDict[str, Matrix] = OrderedDict()

    def encode(self, query: str) -> Matrix:
        """The vector of a query."""
        text = clip_query(query)
        known = self._known.get(text)
        if known is None:
            known = self._encoder.encode([text])[0]
            if self._adapter is not None:
                known = self._adapter.turn(known)
            self._known[text] = known
            if len(self._known) > QUERIES:
                self._known.popitem(last=False)
        return known


def encode_documents(
    documents: Sequence[Document],
    store: VectorStore,
    stopped: Callable[[], bool],
    spend: Callable[[float], object],
) -> Matrix:
    """One vector per tool: the mean of its name, first sentence, text, parameters, examples.

    `spend` hears of the processor's seconds after each tool, and may wait.
    """
    matrix = np.zeros((len(documents), store.size), dtype=np.float32)
    for row, document in enumerate(documents):
        if stopped():
            raise RuntimeError("stopped")
        started = time.thread_time()
        vectors = store.encode(_readings(document))
        matrix[row] = vectors.sum(axis=0) - NAME_DISCOUNT * vectors[0]
        spend(time.thread_time() - started)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: Matrix = matrix / np.maximum(lengths, 1e-6)
    return unit


def _readings(document: Document) -> list[str]:
    name = spaced(document.name)
    text = " ".join(document.description[: 4 * _LONG].split())
    first = text.partition(". ")[0][:_LONG]
    parameters = ", ".join(map(spaced, read_parameter_names(document)[:_PARAMETERS]))
    return [
        name,
        first or name,
        f"{name}: {text[:_LONG]}",
        f"{name}: {text[:_BRIEF]} {parameters}",
        *document.examples,
    ]
