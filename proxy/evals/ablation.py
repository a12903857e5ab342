"""A labelled set comes in; what leaving out each signal of the ranker costs on it goes out."""

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

from proxy.evals.metrics import mean, recall_at
from proxy.evals.retrieval import rank_all
from proxy.evals.sets import Catalogue, Labelled, read_catalogue, read_queries
from proxy.tools.lexical import build_lexical
from proxy.tools.signals import NEUTRAL, Signals
from proxy.wire import JSONObject

DEPTHS = (1, 5)


def evaluate_ablation(folder: Path) -> JSONObject:
    """Recall with everything, with nothing, and without each signal in turn."""
    catalogue = read_catalogue(folder)
    queries = read_queries(folder, catalogue.known)
    rows = [
        {"without": name, **_measure(catalogue, queries, signals)} for name, signals in _variants()
    ]
    return {"set": catalogue.name, "queries": len(queries), "rows": rows}


def _variants() -> Iterator[tuple[str, Signals]]:
    yield "nothing", Signals()
    for field in fields(Signals):
        yield field.name, replace(Signals(), **{field.name: getattr(NEUTRAL, field.name)})
    yield "everything", NEUTRAL


def _measure(catalogue: Catalogue, queries: list[Labelled], signals: Signals) -> dict[str, float]:
    ranked, _ = rank_all(build_lexical(catalogue.documents, signals), catalogue, queries)
    return {
        f"recall@{depth}": mean(
            recall_at(ids, query.gold, depth) for ids, query in zip(ranked, queries, strict=True)
        )
        for depth in DEPTHS
    }
