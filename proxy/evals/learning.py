"""A labelled set comes in; what learning half of its queries does for the other half goes out."""

from collections.abc import Sequence
from pathlib import Path

from proxy.evals.metrics import mean, recall_at
from proxy.evals.rankers import Ranker
from proxy.evals.retrieval import rank_all
from proxy.evals.sets import Catalogue, Labelled, read_catalogue, read_queries
from proxy.tools.document import Document
from proxy.tools.lessons import PER_TENANT, LearnedIndex, Lessons
from proxy.tools.rank import Index
from proxy.wire import JSONObject

DEPTHS = (1, 5)
TENANT = "eval"


def evaluate_learning(
    folder: Path, name: str, ranker: Ranker, mute: int = 0, times: int = 1
) -> JSONObject:
    """Recall before and after; every second query is learned, as many as a tenant remembers.

    Each ended in its tool so many `times`; those that were learned are asked again as well.
    `mute` takes away the name and text of so many tools, spread over the catalogue: their queries
    can only be answered by what was learned, and are reported apart from the others.
    """
    catalogue = read_catalogue(folder)
    queries = read_queries(folder, catalogue.known)
    silent = frozenset(catalogue.ids[:: max(1, len(catalogue.ids) // mute)][:mute] if mute else ())
    documents = [
        Document(f"run_operation_{place}", "", "", None) if own in silent else tool
        for place, (own, tool) in enumerate(zip(catalogue.ids, catalogue.documents, strict=True))
    ]
    plain = ranker(documents).index
    lessons = _teach(catalogue, documents, queries[::2], times)
    learned = LearnedIndex(plain, lambda query: lessons.recall(TENANT, query))
    asked = queries[1::2]
    rows = {
        "all": asked,
        "like a learned one": [query for query in asked if lessons.recall(TENANT, query.text)],
        "of silenced tools": [query for query in asked if _is_about(query, silent)],
        "of all others": [query for query in asked if not _is_about(query, silent)],
        "learned ones again": queries[::2][:PER_TENANT],
    }
    return {
        "set": catalogue.name,
        "ranker": name,
        "learned": min(len(queries[::2]), PER_TENANT),
        "rows": [
            {
                "queries": title,
                "count": len(chosen),
                "before": _measure(plain, catalogue, chosen),
                "learned": _measure(learned, catalogue, chosen),
            }
            for title, chosen in rows.items()
            if chosen and (mute or not title.startswith("of "))
        ],
    }


def _teach(
    catalogue: Catalogue,
    documents: Sequence[Document],
    queries: Sequence[Labelled],
    times: int,
) -> Lessons:
    """Lessons of queries that ended in the first of their tools."""
    lessons = Lessons()
    names = dict(zip(catalogue.ids, (tool.name for tool in documents), strict=True))
    for query in [*queries[:PER_TENANT]] * times:
        lessons.learn(TENANT, query.text, names[min(query.gold[0])])
    return lessons


def _is_about(query: Labelled, ids: frozenset[str]) -> bool:
    return any(slot & ids for slot in query.gold)


def _measure(index: Index, catalogue: Catalogue, queries: Sequence[Labelled]) -> JSONObject:
    ranked, _ = rank_all(index, catalogue, queries)
    pairs = list(zip(ranked, queries, strict=True))
    return {
        f"recall@{depth}": mean(recall_at(ids, query.gold, depth) for ids, query in pairs)
        for depth in DEPTHS
    }
