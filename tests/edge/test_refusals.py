"""The refusals of HTTP: each is a client's mistake in OpenAI's shape."""

import pytest

from proxy.edge.refusals import HeadersTooLarge, MethodNotAllowed, NotOffered
from proxy.errors import BadRequest


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
