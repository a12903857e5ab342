"""Tracing is off unless asked for, and says what it needs."""

import subprocess
import sys

import pytest

from proxy.errors import ConfigError
from proxy.observe.trace import NoTracer, Span, open_tracer

SPAN = Span("req_1", "client", "chat m", 0.0, 1.0, {})


def test_off_does_nothing() -> None:
    """The caller's own traceparent goes on as it came."""
    tracer = open_tracer(enabled=False)
    assert isinstance(tracer, NoTracer)
    assert tracer.begin("req_1", [(b"traceparent", b"00-1-2-01")]) is None
    tracer.emit(SPAN)
    tracer.close()


def test_off_loads_no_opentelemetry() -> None:
    """An optional extra is never imported by accident."""
    script = (
        "import sys; from proxy.observe.trace import open_tracer; open_tracer(enabled=False); "
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_on_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line at the start instead of traces that never arrive."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"tracing\.enabled: needs usher-gateway\[otel\]"):
        open_tracer(enabled=True)


def test_on_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it sends to is OpenTelemetry's own configuration."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    tracer = open_tracer(enabled=True)
    assert tracer.begin("req_1", []) is not None
    tracer.close()
