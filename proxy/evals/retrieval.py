"""A labelled set and a ranker come in; recall, rank and speed go out."""

import time
from collections.abc import Sequence
from pathlib import Path

from proxy.evals.metrics import gain_at, mean, percentile, recall_at, reciprocal_rank
from proxy.evals.rankers import Ranker
from proxy.evals.sets import Catalogue, Labelled, read_catalogue, read_queries
from proxy.tools.rank import Index
from proxy.wire import JSONObject

DEPTHS = (1, 3, 5, 10)


def evaluate_retrieval(folder: Path, name: str, ranker: Ranker) -> JSONObject:
    """Rank every query of a set and measure how well and how fast."""
    catalogue = read_catalogue(folder)
    queries = read_queries(folder, catalogue.known)
    prepared = ranker(catalogue.documents)
    ranked, latencies = rank_all(prepared.index, catalogue, queries)
    pairs = list(zip(ranked, queries, strict=True))
    return {
        "set": catalogue.name,
        "ranker": name,
        "queries": len(queries),
        "recall": {
            str(depth): mean(recall_at(ids, query.gold, depth) for ids, query in pairs)
            for depth in DEPTHS
        },
        "mrr": mean(reciprocal_rank(ids, query.gold) for ids, query in pairs),
        "ndcg10": mean(gain_at(ids, query.gold, 10) for ids, query in pairs),
        "index_ms": prepared.index_ms,
        "query_ms": {
            "p50": round(percentile(latencies, 0.5), 3),
            "p95": round(percentile(latencies, 0.95), 3),
        },
    }


def rank_all(
    index: Index, catalogue: Catalogue, queries: Sequence[Labelled]
) -> tuple[list[list[str]], list[float]]:
    """The first ten ids of every query, and the milliseconds that each took."""
    ranked: list[list[str]] = []
    latencies: list[float] = []
    for query in queries:
        started = time.perf_counter()
        hits = index.rank(query.text, DEPTHS[-1])
        latencies.append((time.perf_counter() - started) * 1e3)
        ranked.append([catalogue.ids[hit.position] for hit in hits])
    return ranked, latencies
