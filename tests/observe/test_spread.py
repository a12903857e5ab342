"""Histograms of our own look like Prometheus' own."""

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.exposition import generate_latest

from proxy.observe.spread import Spread

BOUNDS = (0.0001, 0.01, 0.5, 1.0)
VALUES = (0.0, 0.0001, 0.00011, 0.3, 0.5, 7.0)


def lines_of(registry: CollectorRegistry) -> list[str]:
    text = generate_latest(registry).decode()
    return [line for line in text.splitlines() if "_created" not in line]


def test_the_same_as_the_library_s_own() -> None:
    """Names, buckets, edges, sum and count: a dashboard cannot tell them apart."""
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    spread = Spread("took_seconds", "How long it took.", BOUNDS, ours)
    histogram = Histogram("took_seconds", "How long it took.", buckets=BOUNDS, registry=theirs)
    for value in VALUES:
        spread.observe(value)
        histogram.observe(value)
    assert lines_of(ours) == lines_of(theirs)


def test_nothing_measured_is_zero_not_missing() -> None:
    """A fresh process shows all buckets, so that rates have a beginning."""
    registry = CollectorRegistry()
    Spread("took_seconds", "How long it took.", BOUNDS, registry)
    assert registry.get_sample_value("took_seconds_bucket", {"le": "+Inf"}) == 0
    assert registry.get_sample_value("took_seconds_count") == 0
