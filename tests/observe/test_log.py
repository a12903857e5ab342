"""Usher's log: one line per event, named by its request, free of secrets."""

import io
import logging
from collections.abc import Iterator

import orjson
import pytest

from proxy.observe.log import REQUEST_ID, configure, silent
from proxy.settings import Log


@pytest.fixture(autouse=True)
def _keep_root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)


def _lines(out: io.StringIO) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in out.getvalue().splitlines()]


def test_event_is_one_json_line() -> None:
    """Away from a terminal every event is one JSON object with level and time."""
    out = io.StringIO()
    configure(Log(), out).warning("upstream_failed", kind="timeout", tries=3)
    (line,) = _lines(out)
    assert line["event"] == "upstream_failed"
    assert line["level"] == "warning"
    assert line["tries"] == 3
    assert str(line["timestamp"]).endswith("Z")


def test_line_names_the_request() -> None:
    """A line written while a request is served carries its id."""
    out = io.StringIO()
    log = configure(Log(), out)
    token = REQUEST_ID.set("req_1")
    log.info("turn")
    REQUEST_ID.reset(token)
    log.info("idle")
    first, second = _lines(out)
    assert first["request_id"] == "req_1"
    assert "request_id" not in second


def test_less_severe_events_are_dropped() -> None:
    """The configured level decides what is written."""
    out = io.StringIO()
    log = configure(Log(level="warning"), out)
    log.info("unseen")
    log.error("seen")
    assert [line["event"] for line in _lines(out)] == ["seen"]


@pytest.mark.parametrize(
    "secret",
    ["Bearer abcdefghijk", "bearer abc.def-123456", "sk-proj-abcdefgh1234", "pk_live_12345678"],
)
def test_secrets_never_reach_the_log(secret: str) -> None:
    """A credential inside a text is replaced, whoever wrote the text."""
    out = io.StringIO()
    log = configure(Log(), out)
    log.error("failed", reason=f"rejected {secret} at once")
    logging.getLogger("aiohttp.client").error("cannot use %s", secret)
    assert secret.rsplit(maxsplit=1)[-1] not in out.getvalue()
    assert out.getvalue().count("[removed]") == 2


def test_password_in_a_url_is_removed() -> None:
    """Credentials inside a database or upstream URL are replaced."""
    out = io.StringIO()
    configure(Log(), out).error("failed", url="postgresql://me:hunter2@db/usher")
    assert "hunter2" not in out.getvalue()
    assert "db/usher" in out.getvalue()


def test_bodies_never_reach_the_log() -> None:
    """Fields that could hold what users wrote are removed even when somebody logs them."""
    out = io.StringIO()
    configure(Log(), out).error("failed", body="private words", messages=["private words"])
    assert "private words" not in out.getvalue()


def test_exception_shows_no_local_values() -> None:
    """A traceback names files and lines, never the values of variables."""
    out = io.StringIO()
    log = configure(Log(), out)
    private = "private " + "words"
    try:
        int(private[:0])
    except ValueError:
        log.exception("bug")
    (line,) = _lines(out)
    assert "ValueError: invalid literal" in str(line["exception"])
    assert "private words" not in out.getvalue()


def test_libraries_write_to_the_same_place() -> None:
    """What libraries warn about looks like Usher's own lines, and their chatter is dropped."""
    out = io.StringIO()
    configure(Log(), out)
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    (line,) = _lines(out)
    assert line["logger"] == "uvicorn.error"
    assert line["event"] == "Invalid HTTP request received."


def test_pretty_lines_are_for_people() -> None:
    """The pretty format is plain text instead of JSON."""
    out = io.StringIO()
    configure(Log(format="pretty"), out).info("listening", port=8787)
    assert "listening" in out.getvalue()
    assert "port=8787" in out.getvalue()


def test_silent_logger_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The logger for library use accepts events and drops them."""
    silent().error("anything", detail=1)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
