"""What a refused client is told: a sentence, a code, and when to come back."""

from proxy.keys.budget import Spent
from proxy.keys.key import GatewayKey, Limits, new_secret
from proxy.keys.refusal import (
    FINAL,
    Used,
    budget_spent,
    rate_headers,
    too_many_inside,
    too_many_requests,
    too_many_tokens,
)

_USED = Used(requests=3, requests_reset=59.01, tokens=120, tokens_reset=0.0)


def test_only_what_is_limited_has_headers() -> None:
    """What remains is never below nothing, and a reset is never too early."""
    assert rate_headers(Limits(), _USED) == []
    assert dict(rate_headers(Limits(rpm=5, tpm=100), _USED)) == {
        b"x-ratelimit-limit-requests": b"5",
        b"x-ratelimit-remaining-requests": b"2",
        b"x-ratelimit-reset-requests": b"60s",
        b"x-ratelimit-limit-tokens": b"100",
        b"x-ratelimit-remaining-tokens": b"0",
        b"x-ratelimit-reset-tokens": b"0s",
    }


def test_a_wait_is_in_whole_seconds() -> None:
    """Rounded up: who comes back then is let in."""
    limits = Limits(rpm=5, tpm=100, concurrent=2)
    refused = too_many_requests(limits, 59.2, [])
    assert refused.retry_after == 60
    assert "try again in 60 s" in refused.message
    assert too_many_tokens(limits, 99, 10, 0.3, []).retry_after == 1
    assert too_many_inside(limits).retry_after == 1


def test_what_never_fits_is_final() -> None:
    """SDKs must not try again, nor for money that is spent."""
    limits = Limits(tpm=100)
    assert too_many_tokens(limits, 0, 101, 1, []).headers == FINAL
    assert too_many_tokens(limits, 100, 1, 1, []).headers == []
    key = GatewayKey("alice", new_secret()[1], 0.0)
    spent = budget_spent(key, Spent("day", 3600.5))
    assert spent.headers == FINAL
    assert spent.body()["error"]["code"] == "insufficient_quota"
