"""Priced rows in; counters of tokens and money, and the ledger's own health, for Prometheus out."""

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from proxy.ledger.store import Health
from proxy.ledger.usage import NANO, Row

OTHER = "other"

_MOST_MODELS = 50
_TYPES = ("prompt", "cached", "completion", "reasoning")


class Sums:
    """What the calls of one context and model used."""

    __slots__ = ("calls", "nano_usd", "tokens")

    def __init__(self) -> None:
        self.calls = 0
        self.nano_usd = 0
        self.tokens = [0, 0, 0, 0]


class Tally(Collector):
    """A listener of the ledger that Prometheus can scrape; plain sums, so a row costs 1 µs.

    Model names come from clients: after the first fifty, a new one counts as `other`.
    """

    def __init__(self, health: Callable[[], Health]) -> None:
        self._health = health
        self._sums: dict[tuple[str, str], Sums] = {}
        self._models: set[str] = set()

    def count(self, row: Row) -> None:
        """Add a row; unknown numbers add nothing."""
        sums = self._sums.get((row.context, row.model)) or self._start(row)
        sums.calls += 1
        sums.nano_usd += row.cost_nano_usd or 0
        tokens = sums.tokens
        tokens[0] += row.prompt_tokens or 0
        tokens[1] += row.cached_tokens or 0
        tokens[2] += row.completion_tokens or 0
        tokens[3] += row.reasoning_tokens or 0

    def collect(self) -> Iterator[Metric]:
        """What a scrape shows."""
        labels = ["context", "model"]
        calls = CounterMetricFamily("usher_calls", "Upstream calls and judgments.", labels=labels)
        tokens = CounterMetricFamily(
            "usher_usage_tokens", "Reported tokens.", labels=[*labels, "type"]
        )
        cost = CounterMetricFamily("usher_cost_usd", "Known cost.", labels=labels)
        for key, sums in list(self._sums.items()):
            calls.add_metric(key, sums.calls)
            cost.add_metric(key, sums.nano_usd / NANO)
            for kind, number in zip(_TYPES, sums.tokens, strict=True):
                tokens.add_metric((*key, kind), number)
        yield from (calls, tokens, cost)
        yield from describe_health(self._health())

    def _start(self, row: Row) -> Sums:
        model = row.model
        if model not in self._models:
            if len(self._models) >= _MOST_MODELS:
                model = OTHER
            else:
                self._models.add(model)
        return self._sums.setdefault((row.context, model), Sums())


def describe_health(health: Health) -> Iterator[Metric]:
    """The ledger's own numbers."""
    pending = "Lines that wait to be written."
    yield GaugeMetricFamily("usher_ledger_pending_lines", pending, value=health.pending)
    dropped = "Lines that were lost because the database was away for too long."
    yield CounterMetricFamily("usher_ledger_dropped_lines", dropped, value=health.dropped)
    failures = "Attempts to write that failed."
    yield CounterMetricFamily("usher_ledger_failures", failures, value=health.failures)
    degraded = "1 while lines cannot be written."
    value = int(health.degraded is not None)
    yield GaugeMetricFamily("usher_ledger_degraded", degraded, value=value)
