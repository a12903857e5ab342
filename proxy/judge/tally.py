"""The rows of judgments come in; a counter for Prometheus goes out."""

from prometheus_client import CollectorRegistry, Counter

from proxy.judge.failures import Failure
from proxy.ledger.usage import Row

OUTCOMES = frozenset({"ok", "partial", "cache_hit", *map(str, Failure)})
OTHER = "other"


class JudgmentTally:
    """`usher_judgments_total{provider,outcome}`, a series made when it is first counted.

    Providers have the names that the configuration gives them, outcomes are those of the ledger.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counter = Counter(
            "usher_judgments_total",
            "Attempts at judgments, by who was asked and what came of it.",
            ["provider", "outcome"],
            registry=registry,
        )
        self._children: dict[tuple[str, str], Counter] = {}

    def count(self, row: Row) -> None:
        """Add the row of a judgment, whatever it was for."""
        outcome = str(row.outcome) if row.outcome in OUTCOMES else OTHER
        key = row.provider, outcome
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._counter.labels(*key)
        child.inc()
