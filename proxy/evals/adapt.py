"""Labelled sets come in; the turn of query vectors that serves them best goes out.

Softmax regression over each set's tools, pulled towards changing nothing, then cut to low rank.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proxy.evals.sets import read_catalogue, read_queries
from proxy.tools.adapter import Adapter
from proxy.tools.semantic import MAX_BYTES, UniversalEncoder
from proxy.tools.vectors import VectorStore, clip_query, encode_documents

Matrix = NDArray[np.float32]
STEPS, BATCH, OTHERS = 120, 200, 600
"""Gradient steps; queries of a set in each; other tools of a large set that they compete with."""
RATE, MOMENTUM, SHARPNESS, PULL = 0.02, 0.9, 20.0, 0.006
RANK = 32


@dataclass(frozen=True, slots=True)
class Examples:
    """A set as vectors; `gold` spreads each query's weight over its tools."""

    queries: Matrix
    tools: Matrix
    gold: Matrix


def read_examples(folder: Path, store: VectorStore) -> Examples:
    """Encode a labelled set."""
    catalogue = read_catalogue(folder)
    queries = read_queries(folder, catalogue.known)
    places = {identity: at for at, identity in enumerate(catalogue.ids)}
    gold = np.zeros((len(queries), len(places)), dtype=np.float32)
    for row, query in enumerate(queries):
        wanted = [places[one] for slot in query.gold for one in slot]
        gold[row, wanted] = 1.0 / len(wanted)
    return Examples(
        queries=store.encode([clip_query(query.text) for query in queries]),
        tools=encode_documents(catalogue.documents, store, lambda: False, lambda _seconds: None),
        gold=gold,
    )


def train_adapter(sets: Iterable[Examples], size: int) -> Adapter:
    """Learn a turn from several sets that all weigh the same."""
    examples = list(sets)
    random = np.random.default_rng(0)
    change = np.zeros((size, size), dtype=np.float32)
    momentum = np.zeros_like(change)
    for _ in range(STEPS):
        slopes = [_slope(one, change, random) for one in examples]
        slope = np.mean(slopes, axis=0) + PULL * SHARPNESS * change
        momentum = MOMENTUM * momentum + slope
        change -= RATE * momentum
    left, strength, right = np.linalg.svd(change)
    return Adapter(left[:, :RANK] * strength[:RANK], right[:RANK])


def _slope(examples: Examples, change: Matrix, random: np.random.Generator) -> Matrix:
    """The gradient of the cross entropy on a sample of one set."""
    rows = random.permutation(len(examples.queries))[:BATCH]
    wanted = np.flatnonzero(examples.gold[rows].sum(axis=0))
    others = random.permutation(len(examples.tools))[:OTHERS]
    columns = np.union1d(wanted, others)
    queries, tools = examples.queries[rows], examples.tools[columns]
    scores = SHARPNESS * ((queries + queries @ change) @ tools.T)
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    error = chances - examples.gold[np.ix_(rows, columns)]
    slope: Matrix = SHARPNESS * (queries.T @ (error @ tools)) / len(rows)
    return slope


def learn_file(folders: Iterable[Path], vectors: Path | None, out: Path) -> None:
    """Learn one turn from several folders and write it; `vectors` keeps what was encoded."""
    store = VectorStore(UniversalEncoder(), vectors, MAX_BYTES)
    train_adapter([read_examples(one, store) for one in folders], store.size).write(out)
