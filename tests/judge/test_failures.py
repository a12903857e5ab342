"""The error tables of every dialect: what a reply means and when to come back."""

from typing import Any

import pytest

from proxy.judge.failures import RETRIED, Failed, Failure, classify, retry_after
from proxy.wire import Headers

TOKENS = {"detail": {"error_type": "max_tokens_exceeded"}}
ALLOCATION = {"success": False, "errors": [{"code": 4006, "message": "x"}]}
CLEF_LARGE = {"errors": [{"code": 5021}]}
OPENROUTER = {"error": {"code": 402, "message": "x"}, "user_id": "u"}

TABLE = [
    (400, None, Failure.BAD_REQUEST),
    (400, TOKENS, Failure.TOO_LARGE),
    (400, CLEF_LARGE, Failure.TOO_LARGE),
    (401, None, Failure.UNAUTHORIZED),
    (402, OPENROUTER, Failure.PAYMENT),
    (403, None, Failure.UNAUTHORIZED),
    (404, None, Failure.BAD_REQUEST),
    (408, None, Failure.RATE_LIMITED),
    (413, CLEF_LARGE, Failure.TOO_LARGE),
    (422, {"detail": [{"loc": ["body"], "msg": "x", "input": "secret"}]}, Failure.BAD_REQUEST),
    (429, None, Failure.RATE_LIMITED),
    (429, ALLOCATION, Failure.PAYMENT),
    (500, None, Failure.SERVER_ERROR),
    (502, None, Failure.SERVER_ERROR),
    (503, b"<html>", Failure.SERVER_ERROR),
    (524, None, Failure.SERVER_ERROR),
    (529, {"errors": "not a list"}, Failure.SERVER_ERROR),
    (204, None, Failure.MALFORMED),
    (206, None, Failure.MALFORMED),
    (302, None, Failure.MALFORMED),
    (307, None, Failure.MALFORMED),
    (418, None, Failure.BAD_REQUEST),
]


@pytest.mark.parametrize(("status", "body", "failure"), TABLE)
def test_error_table(status: int, body: Any, failure: Failure) -> None:
    """Every row of the table has its class."""
    assert classify(status, body, [], 0.0).failure is failure


def test_only_passing_failures_are_retried() -> None:
    """A timeout has spent the deadline, and the rest would fail again."""
    assert {Failure.RATE_LIMITED, Failure.SERVER_ERROR, Failure.NETWORK} == RETRIED


def test_a_failure_never_quotes_the_reply() -> None:
    """Validation errors echo the user's text."""
    failed = classify(422, {"detail": [{"input": "my secret", "code": "c"}]}, [], 0.0)
    assert "secret" not in f"{failed} {failed.args} {vars(failed)}"
    assert str(failed) == "bad_request (422)"
    assert str(Failed(Failure.TIMEOUT)) == "timeout"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([], None),
        ([(b"Retry-After-Ms", b"250"), (b"Retry-After", b"9")], 0.25),
        ([(b"retry-after", b"1.5")], 1.5),
        ([(b"retry-after", b"Thu, 01 Jan 1970 00:00:30 GMT")], 20.0),
        ([(b"retry-after", b"Thu, 01 Jan 1970 00:00:05 GMT")], 0.0),
        ([(b"retry-after", b"Thu, 01 Jan 1970 00:00:30 -0000")], 20.0),
        ([(b"retry-after", b"soon")], None),
        ([(b"retry-after", b"-3")], None),
        ([(b"retry-after", b"nan")], None),
    ],
)
def test_retry_after(headers: Headers, seconds: float | None) -> None:
    """Milliseconds win over seconds, and a date counts from now."""
    assert retry_after(headers, 10.0) == seconds
