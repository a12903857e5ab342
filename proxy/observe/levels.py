"""Whoever knows some levels comes in; gauges that are read when they are scraped go out."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

Read = Callable[[], Mapping[str, float]]
"""From each value of the label to its number; called in any thread."""


class Levels(Collector):
    """A gauge with one label.

    Nothing has to be told when a level changes, and what is no longer there is no longer shown.
    """

    def __init__(self, name: str, text: str, label: str, registry: CollectorRegistry) -> None:
        self._name = name
        self._text = text
        self._label = label
        self._read: Read = dict
        registry.register(self)

    def follow(self, read: Read) -> None:
        """Ask this one from now on."""
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """What a scrape shows."""
        gauge = GaugeMetricFamily(self._name, self._text, labels=[self._label])
        for value, number in self._read().items():
            gauge.add_metric([value], number)
        yield gauge
