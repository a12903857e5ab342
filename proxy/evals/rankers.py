"""A ranker's name and tools come in; an index that is done with its preparations goes out."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from proxy.errors import ConfigError
from proxy.tools.document import Document
from proxy.tools.rank import Index, build_lexical
from proxy.tools.semantic import Semantic, has_semantic

NAMES = ("lexical", "semantic")
PATIENCE_SECONDS = 3_600.0
"""How long a large catalogue's vectors may take."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An index, and the milliseconds until it could answer."""

    index: Index
    index_ms: float


class Ranker(Protocol):
    """Something to measure."""

    def __call__(self, documents: Sequence[Document]) -> Prepared:
        """Index a catalogue, vectors included."""


@contextmanager
def open_ranker(name: str, vectors: Path | None) -> Iterator[Ranker]:
    """Open a ranker by name; `vectors` is the file that keeps sentence vectors."""
    if name == "lexical":
        yield _prepare_lexical
    elif name == "semantic" and has_semantic():
        with _open_semantic(vectors) as ranker:
            yield ranker
    elif name == "semantic":
        raise ConfigError(
            "the semantic ranker is not installed: pip install usher-gateway[semantic]"
        )
    else:
        raise ConfigError(f"no ranker {name!r}; there are {', '.join(NAMES)}")


def _prepare_lexical(documents: Sequence[Document]) -> Prepared:
    started = time.perf_counter()
    index = build_lexical(documents)
    return Prepared(index, _since(started))


@contextmanager
def _open_semantic(vectors: Path | None) -> Iterator[Ranker]:
    failures: list[str] = []
    semantic = Semantic(vectors, failures.append, share=1.0)

    def prepare(documents: Sequence[Document]) -> Prepared:
        started = time.perf_counter()
        index, done = semantic.start(documents)
        elapsed = _since(started)
        done.result(PATIENCE_SECONDS)
        if failures:
            raise ConfigError(failures[0])
        return Prepared(index, elapsed)

    try:
        yield prepare
    finally:
        semantic.close()


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1e3, 2)
