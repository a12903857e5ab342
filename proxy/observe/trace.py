"""Spans in, whatever collects traces out; nothing at all unless an operator asked for it."""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from proxy.errors import ConfigError
from proxy.wire import Headers

Attribute: TypeAlias = str | int | float | bool

TRACEPARENT = b"traceparent"


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time, told when it is over; never with anybody's text in it.

    `server` is the turn itself, `client` one call that it made. `error` says what went wrong.
    """

    request_id: str
    kind: Literal["server", "client"]
    name: str
    started_at: float
    seconds: float
    attributes: Mapping[str, Attribute]
    error: str | None = None


class Tracer(Protocol):
    """Where spans go."""

    def begin(self, request_id: str, headers: Headers) -> bytes | None:
        """Join the caller's trace; what to send upstream as `traceparent`, None = the caller's."""

    def emit(self, span: Span) -> None:
        """Hand over a span; its calls may come before and after their turn."""

    def close(self) -> None:
        """Send what is waiting; may take seconds, so not on the event loop."""


class NoTracer:
    """Tracing that is off: the caller's `traceparent` is passed on as it came."""

    def begin(self, request_id: str, headers: Headers) -> bytes | None:  # noqa: ARG002 - tracing is off
        """Leave it alone."""
        return None

    def emit(self, span: Span) -> None:
        """Forget it."""

    def close(self) -> None:
        """Nothing is waiting."""


def open_tracer(*, enabled: bool) -> Tracer:
    """The tracer that the settings ask for; where it sends to is said by `OTEL_*` variables.

    Raises ConfigError when the extra `otel` is not installed.
    """
    if not enabled:
        return NoTracer()
    if importlib.util.find_spec("opentelemetry.exporter") is None:
        raise ConfigError(
            "tracing.enabled: needs usher-gateway[otel] installed", param="tracing.enabled"
        )
    from proxy.observe.otel import export_over_http  # noqa: PLC0415 - an optional extra

    return export_over_http()
