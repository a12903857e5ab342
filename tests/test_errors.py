"""The face that each error shows to a client."""

import inspect

import pytest

from proxy import errors
from proxy.errors import (
    BadRequest,
    HeadersTooLarge,
    MethodNotAllowed,
    NotOffered,
    RateLimited,
    UpstreamError,
    UpstreamRefused,
    UsherError,
)

TREE = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind is not object]
ERRORS = [kind for kind in TREE if issubclass(kind, UsherError)]
OURS = [kind for kind in ERRORS if kind is not UpstreamRefused]


@pytest.mark.parametrize("kind", OURS)
def test_every_error_has_openai_s_four_keys(kind: type[UsherError]) -> None:
    """The body is OpenAI's error object, whole, and carries the message."""
    body = kind("what went wrong", param="tools").body()["error"]
    assert list(body) == ["message", "type", "param", "code"]
    assert (body["message"], body["param"]) == ("what went wrong", "tools")


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_is_drawn_in_the_tree(kind: type[UsherError]) -> None:
    """The picture at the top of the module shows each class, with its status when it has one."""
    line = next(line for line in (errors.__doc__ or "").splitlines() if kind.__name__ in line)
    assert kind.status == 500 or str(kind.status) in line or "  any  " in line


@pytest.mark.parametrize("kind", ERRORS)
def test_statuses_are_errors(kind: type[UsherError]) -> None:
    """No error becomes a success."""
    assert 400 <= kind.status <= 599


def test_a_limit_says_when_to_come_back() -> None:
    """The seconds travel with the error, outside the body."""
    error = RateLimited("too many requests", retry_after=2.5)
    assert error.retry_after == 2.5
    assert "retry_after" not in error.body()["error"]


def test_an_upstream_s_own_error_is_handed_on() -> None:
    """A hidden round that was refused reaches the client as the upstream put it."""
    error = UpstreamRefused(429, {"message": "slow down", "vendor": 1}, retry_after=3)
    assert (error.status, error.retry_after) == (429, 3)
    assert error.body() == {"error": {"message": "slow down", "vendor": 1}}


def test_upstream_failures_are_one_family() -> None:
    """Whoever catches UpstreamError catches each way in which an upstream fails."""
    family = {kind.__name__ for kind in ERRORS if issubclass(kind, UpstreamError)}
    assert {"ConnectFailed", "UpstreamTimeout", "StreamTruncated"} <= family


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        (MethodNotAllowed, 405, "method_not_allowed"),
        (HeadersTooLarge, 431, "headers_too_large"),
        (NotOffered, 501, "not_implemented"),
    ],
)
def test_refusal_has_its_status_and_code(kind: type[BadRequest], status: int, code: str) -> None:
    """SDKs tell refusals apart by status, people by code."""
    refusal = kind("No.")
    assert refusal.status == status
    assert refusal.body()["error"]["code"] == code
    assert refusal.body()["error"]["type"] == "invalid_request_error"
