"""Measured seconds go in; a Prometheus histogram of them goes out when somebody asks for it.

prometheus_client takes a lock and walks the buckets for each observation, 2 µs; this takes 0.3. It
is for one thread: the event loop's.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client.metrics_core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry


class Spread(Collector):
    """A histogram without labels; `bounds` are its buckets' upper ends in seconds, ascending."""

    def __init__(
        self, name: str, text: str, bounds: Sequence[float], registry: CollectorRegistry
    ) -> None:
        self._name = name
        self._text = text
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        registry.register(self)

    def observe(self, seconds: float) -> None:
        """Count a measurement in the bucket that it fits in."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def collect(self) -> Iterator[Metric]:
        """The histogram of now."""
        names = [*(repr(float(bound)) for bound in self._bounds), "+Inf"]
        buckets = [
            (name, float(count))
            for name, count in zip(names, accumulate(self._counts), strict=True)
        ]
        yield HistogramMetricFamily(self._name, self._text, buckets=buckets, sum_value=self._sum)
