"""Finished spans in, OpenTelemetry traces and metrics out (GenAI semantic conventions)."""

import hashlib
import re
from collections import OrderedDict

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Histogram
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from proxy.observe.trace import TRACEPARENT, Span
from proxy.wire import Headers

_PARENT = re.compile(rb"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_REMEMBERED = 10_000
_NANO = 1_000_000_000
_DURATIONS = tuple(0.01 * 2**power for power in range(14))
_TOKENS = tuple(4**power for power in range(14))
_METRIC_LABELS = (
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "usher.context",
)


class OtelTracer:
    """A span is made when it is over, under ids that were known when it began.

    The ids of a turn follow from its request id, so calls can name their turn as parent before
    the turn has ended, and a memory run can after.
    """

    def __init__(self, processor: SpanProcessor, reader: MetricReader) -> None:
        resource = Resource.create({"service.name": "usher"})
        self._ids = _ChosenIds()
        self._provider = TracerProvider(resource=resource, id_generator=self._ids)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("usher")
        self._meters = MeterProvider([reader], resource)
        self._durations, self._tokens = _instruments(self._meters)
        self._callers: OrderedDict[str, SpanContext] = OrderedDict()

    def begin(self, request_id: str, headers: Headers) -> bytes | None:
        caller = _read_traceparent(headers)
        if caller is not None:
            self._callers[request_id] = caller
            if len(self._callers) > _REMEMBERED:
                self._callers.popitem(last=False)
        turn = self._turn(request_id)
        return b"00-%032x-%016x-%02x" % (turn.trace_id, turn.span_id, turn.trace_flags)

    def emit(self, span: Span) -> None:
        turn = self._turn(span.request_id)
        server = span.kind == "server"
        parent = self._callers.get(span.request_id) if server else turn
        self._ids.chosen = (turn.trace_id, turn.span_id if server else None)
        start = int(span.started_at * _NANO)
        made = self._tracer.start_span(
            span.name,
            None if parent is None else set_span_in_context(NonRecordingSpan(parent)),
            SpanKind.SERVER if server else SpanKind.CLIENT,
            span.attributes,
            start_time=start,
        )
        if span.error is not None:
            made.set_attribute("error.type", span.error)
            made.set_status(Status(StatusCode.ERROR))
        made.end(start + int(span.seconds * _NANO))
        if not server:
            self._measure(span)

    def close(self) -> None:
        self._provider.shutdown()
        self._meters.shutdown()

    def _turn(self, request_id: str) -> SpanContext:
        """The turn's own ids, in the caller's trace if there is one."""
        digest = hashlib.sha256(request_id.encode("utf-8", "replace")).digest()
        caller = self._callers.get(request_id)
        trace_id = int.from_bytes(digest[:16]) if caller is None else caller.trace_id
        flags = TraceFlags(TraceFlags.SAMPLED) if caller is None else caller.trace_flags
        return SpanContext(
            trace_id, int.from_bytes(digest[16:24]), is_remote=False, trace_flags=flags
        )

    def _measure(self, span: Span) -> None:
        labels = {name: span.attributes[name] for name in _METRIC_LABELS if name in span.attributes}
        if span.error is not None:
            labels["error.type"] = span.error
        self._durations.record(span.seconds, labels)
        for kind in ("input", "output"):
            tokens = span.attributes.get(f"gen_ai.usage.{kind}_tokens")
            if isinstance(tokens, int):
                self._tokens.record(tokens, labels | {"gen_ai.token.type": kind})


class _ChosenIds(RandomIdGenerator):
    """Gives the ids that were chosen for the next span, else random ones."""

    def __init__(self) -> None:
        self.chosen: tuple[int, int | None] | None = None

    def generate_trace_id(self) -> int:
        return super().generate_trace_id() if self.chosen is None else self.chosen[0]

    def generate_span_id(self) -> int:
        span_id = None if self.chosen is None else self.chosen[1]
        return super().generate_span_id() if span_id is None else span_id


def export_over_http() -> OtelTracer:
    """Send to the OTLP collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names, in the background."""
    return OtelTracer(
        BatchSpanProcessor(OTLPSpanExporter()),
        PeriodicExportingMetricReader(OTLPMetricExporter()),
    )


def _instruments(meters: MeterProvider) -> tuple[Histogram, Histogram]:
    meter = meters.get_meter("usher")
    durations = meter.create_histogram(
        "gen_ai.client.operation.duration",
        unit="s",
        explicit_bucket_boundaries_advisory=_DURATIONS,
    )
    tokens = meter.create_histogram(
        "gen_ai.client.token.usage", unit="{token}", explicit_bucket_boundaries_advisory=_TOKENS
    )
    return durations, tokens


def _read_traceparent(headers: Headers) -> SpanContext | None:
    value = next((value for name, value in headers if name.lower() == TRACEPARENT), b"")
    match = _PARENT.match(value)
    if match is None:
        return None
    trace_id, span_id, flags = (int(text, 16) for text in match.groups())
    context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return context if context.is_valid else None
