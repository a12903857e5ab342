"""Calls hang under their turn, and the turn under its caller, in whatever order they are told."""

from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from proxy.observe.otel import OtelTracer
from proxy.observe.trace import Span

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
TURN = Span("req_1", "server", "chat m", 100.0, 2.0, {"usher.key": "alice"})
CALL = Span(
    "req_1", "client", "chat m", 100.5, 1.0,
    {"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 7, "usher.context": "main"},
)  # fmt: skip


class Rig:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.tracer = OtelTracer(SimpleSpanProcessor(self.exporter), self.reader)

    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        metrics = data.resource_metrics[0].scope_metrics[0].metrics
        found = next(metric for metric in metrics if metric.name == name)
        return list(found.data.data_points)


def context(span: ReadableSpan) -> Any:
    found = span.get_span_context()
    assert found is not None
    return found


def test_a_call_that_is_told_before_its_turn() -> None:
    """It names the turn as parent all the same."""
    rig = Rig()
    rig.tracer.emit(CALL)
    rig.tracer.emit(TURN)
    call, turn = rig.spans()
    assert call.parent is not None
    assert call.parent.span_id == context(turn).span_id
    assert context(call).trace_id == context(turn).trace_id
    assert turn.parent is None


def test_times_are_those_of_the_event() -> None:
    """Not of the moment it is told."""
    rig = Rig()
    rig.tracer.emit(CALL)
    (call,) = rig.spans()
    assert (call.start_time, call.end_time) == (100_500_000_000, 101_500_000_000)


def test_the_callers_trace_goes_on() -> None:
    """The upstream is told our turn as parent, in the caller's trace."""
    rig = Rig()
    sent = rig.tracer.begin("req_1", [(b"Traceparent", f"00-{TRACE}-{PARENT}-01".encode())])
    rig.tracer.emit(TURN)
    (turn,) = rig.spans()
    assert turn.parent is not None
    assert f"{turn.parent.span_id:016x}" == PARENT
    assert sent == f"00-{TRACE}-{context(turn).span_id:016x}-01".encode()


@pytest.mark.parametrize("broken", [b"", b"00-zz-1-01", f"00-{'0' * 32}-{PARENT}-01".encode()])
def test_a_broken_traceparent_starts_a_trace(broken: bytes) -> None:
    """As if there had been none."""
    rig = Rig()
    rig.tracer.begin("req_1", [(b"traceparent", broken)])
    rig.tracer.emit(TURN)
    assert rig.spans()[0].parent is None


def test_a_caller_that_samples_is_obeyed() -> None:
    """Flag 00: no spans, and the flag goes on to the upstream."""
    rig = Rig()
    sent = rig.tracer.begin("req_1", [(b"traceparent", f"00-{TRACE}-{PARENT}-00".encode())])
    rig.tracer.emit(TURN)
    rig.tracer.emit(CALL)
    assert rig.spans() == ()
    assert sent is not None
    assert sent.endswith(b"-00")


def test_errors_are_marked() -> None:
    """With the outcome as type."""
    rig = Rig()
    rig.tracer.emit(Span("req_1", "client", "chat m", 0.0, 1.0, {}, error="timeout"))
    (call,) = rig.spans()
    assert not call.status.is_ok
    assert dict(call.attributes or {})["error.type"] == "timeout"


def test_metrics() -> None:
    """Durations and tokens of calls, with labels that stay few."""
    rig = Rig()
    rig.tracer.emit(CALL)
    rig.tracer.emit(TURN)
    (duration,) = rig.points("gen_ai.client.operation.duration")
    assert (duration.count, duration.sum) == (1, 1.0)
    assert dict(duration.attributes) == {"gen_ai.request.model": "m", "usher.context": "main"}
    (tokens,) = rig.points("gen_ai.client.token.usage")
    assert (tokens.sum, tokens.attributes["gen_ai.token.type"]) == (7, "input")


def test_many_callers_do_not_fill_the_memory() -> None:
    """The oldest are forgotten; their late spans start a trace of their own."""
    rig = Rig()
    header = [(b"traceparent", f"00-{TRACE}-{PARENT}-01".encode())]
    for number in range(10_001):
        rig.tracer.begin(f"req_{number}", header)
    rig.tracer.emit(Span("req_0", "server", "chat m", 0.0, 1.0, {}))
    rig.tracer.emit(Span("req_9", "server", "chat m", 0.0, 1.0, {}))
    assert [span.parent is None for span in rig.spans()] == [True, False]
    rig.tracer.close()
