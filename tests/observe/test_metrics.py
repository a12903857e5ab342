"""Usher's metrics: what an operator can read at /metrics."""

import asyncio
import contextlib
import time

import pytest

from proxy.observe.metrics import Metrics

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def _text(metrics: Metrics) -> str:
    return metrics.render()[0].decode()


def test_request_is_counted_by_endpoint_and_status() -> None:
    """Answers are countable by kind of endpoint and HTTP status."""
    metrics = Metrics()
    metrics.requests.add("chat", 200)
    metrics.requests.add("chat", 200)
    metrics.requests.add("passthrough", 404)
    assert 'usher_requests_total{endpoint="chat",status="200"} 2.0' in _text(metrics)
    assert 'usher_requests_total{endpoint="passthrough",status="404"} 1.0' in _text(metrics)


def test_odd_status_cannot_grow_the_label() -> None:
    """A status that HTTP does not know is counted as 0."""
    metrics = Metrics()
    for status in range(1000, 1100):
        metrics.requests.add("chat", status)
    assert 'usher_requests_total{endpoint="chat",status="0"} 100.0' in _text(metrics)


def test_unknown_label_counts_as_other() -> None:
    """A value outside the fixed list cannot create a new series."""
    metrics = Metrics()
    metrics.upstream_errors.add("upstream_timeout")
    metrics.upstream_errors.add("error text of some provider")
    assert 'usher_upstream_errors_total{kind="upstream_timeout"} 1.0' in _text(metrics)
    assert 'usher_upstream_errors_total{kind="other"} 1.0' in _text(metrics)
    assert "some provider" not in _text(metrics)


def test_tools_and_savings_are_counted() -> None:
    """Deferral's effect is visible: tools by state, rounds, predictions, tokens kept out."""
    metrics = Metrics()
    metrics.tools.add("deferred", 232)
    metrics.rounds.add("found")
    metrics.predictions.add("hit", 3)
    metrics.tokens_saved.inc(110_000)
    text = _text(metrics)
    assert 'usher_tools_total{state="deferred"} 232.0' in text
    assert 'usher_tool_search_rounds_total{outcome="found"} 1.0' in text
    assert 'usher_predictions_total{outcome="hit"} 3.0' in text
    assert "usher_tool_tokens_saved_total 110000.0" in text


def test_predicted_and_discovered_are_apart() -> None:
    """A guess and a discovery are never one number."""
    metrics = Metrics()
    metrics.tools.add("predicted", 4)
    assert 'usher_tools_total{state="predicted"} 4.0' in _text(metrics)
    assert 'usher_tools_total{state="discovered"} 0.0' in _text(metrics)


def test_two_gateways_count_apart() -> None:
    """Each gateway object has its own registry; nothing is shared in the process."""
    first, second = Metrics(), Metrics()
    first.in_flight.inc()
    assert "usher_in_flight_requests 1.0" in _text(first)
    assert "usher_in_flight_requests 0.0" in _text(second)


def test_answer_is_prometheus_text() -> None:
    """The exposition says what it is and holds help texts and histograms."""
    body, content_type = Metrics().render()
    assert content_type.startswith("text/plain")
    assert b"# HELP usher_overhead_seconds" in body
    assert b'usher_first_chunk_seconds_bucket{le="0.05"}' in body


async def test_blocked_event_loop_is_recorded() -> None:
    """Code that blocks the event loop shows up as a stall."""
    metrics = Metrics()
    async with asyncio.TaskGroup() as group:
        watch = group.create_task(metrics.watch_loop(interval=0.01, threshold=0.05))
        await asyncio.sleep(0.02)
        time.sleep(0.08)  # noqa: ASYNC251 - the blocking is what is tested
        await asyncio.sleep(0.02)
        watch.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watch
    assert "usher_event_loop_stall_seconds_count 1.0" in _text(metrics)
