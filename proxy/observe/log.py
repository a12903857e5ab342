"""Events in, lines on stderr out: JSON or pretty, with the request id, without bodies or keys."""

import logging
import re
import sys
from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any, TextIO, cast

import orjson
import structlog
from structlog.typing import FilteringBoundLogger, Processor

from proxy.settings import Log

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""The request that the current task works for; every line that is written there carries it."""

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_QUIET = ("uvicorn", "aiohttp", "httpx", "httpcore", "asyncio", "sqlalchemy", "aiosqlite")
_SECRET = re.compile(
    r"(?i:bearer\s+|basic\s+)[\w\-.~+/]{8,}=*|\b(?:sk|pk)[-_][\w\-]{8,}|(?<=://)[^/@\s]+@"
)
_FORBIDDEN = frozenset({
    "body", "content", "messages", "prompt", "arguments", "value",
    "authorization", "api_key", "key_secret", "headers", "cookie",
})  # fmt: skip


def configure(settings: Log, stream: TextIO | None = None) -> FilteringBoundLogger:
    """Send everything that is logged in this process to one place and return Usher's own logger.

    Libraries are heard from `warning` on, at level `debug` from `info` on.
    """
    out = stream or sys.stderr
    level = _LEVELS[settings.level]
    render = _renderers(settings.format, out)
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_request_id,
        structlog.processors.format_exc_info,
        remove_secrets,
    ]
    _capture_libraries(out, level, shared, render)
    # By wrap_logger instead of structlog.configure: whoever logs is handed the logger.
    return cast(
        "FilteringBoundLogger",
        structlog.wrap_logger(
            structlog.WriteLogger(out),
            processors=[*shared, *render],
            wrapper_class=structlog.make_filtering_bound_logger(level),
            cache_logger_on_first_use=True,
        ),
    )


def silent() -> FilteringBoundLogger:
    """A logger that writes nothing, for parts that are used as a library."""
    return cast(
        "FilteringBoundLogger",
        structlog.wrap_logger(
            structlog.ReturnLogger(),
            processors=[_drop],
            wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        ),
    )


def add_request_id(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Name the request of the current task, unless the line names one itself."""
    if request_id := REQUEST_ID.get():
        event.setdefault("request_id", request_id)
    return event


def remove_secrets(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """The second line of defence: callers pass none, and libraries' texts are not ours to trust."""
    for name, value in event.items():
        if name in _FORBIDDEN:
            event[name] = "[removed]"
        elif isinstance(value, str):
            event[name] = _SECRET.sub("[removed]", value)
    return event


def _drop(
    _logger: object, _method: str, _event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    raise structlog.DropEvent


def _renderers(wanted: str, out: TextIO) -> list[Processor]:
    if wanted == "pretty" or (wanted == "auto" and out.isatty()):
        return [structlog.dev.ConsoleRenderer(colors=out.isatty())]
    return [structlog.processors.JSONRenderer(serializer=_dump)]


def _dump(event: object, **_options: object) -> str:
    return orjson.dumps(event, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()


def _capture_libraries(
    out: TextIO, level: int, shared: list[Processor], render: list[Processor]
) -> None:
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
    )
    sink = logging.StreamHandler(out)
    sink.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [sink]
    root.setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level + 10, logging.INFO))
