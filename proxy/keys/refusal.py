"""What a key may do and has done comes in; the 429 that says so goes out, and OpenAI's headers."""

import math

import msgspec

from proxy.errors import RateLimited, Unavailable
from proxy.keys.budget import Spent
from proxy.keys.key import GatewayKey, Limits
from proxy.wire import Headers

Names = tuple[bytes, bytes, bytes]
_REQUESTS: Names = (
    b"x-ratelimit-limit-requests",
    b"x-ratelimit-remaining-requests",
    b"x-ratelimit-reset-requests",
)
_TOKENS: Names = (
    b"x-ratelimit-limit-tokens",
    b"x-ratelimit-remaining-tokens",
    b"x-ratelimit-reset-tokens",
)
FINAL: Headers = [(b"x-should-retry", b"false")]
"""SDKs do not try again: waiting a little does not help."""


class LimitReached(RateLimited):
    """A limit of the key is used up; `headers` tell the client's SDK when to come back."""

    def __init__(self, message: str, retry_after: float, headers: Headers) -> None:
        super().__init__(message, retry_after=retry_after)
        self.headers = headers


class BudgetSpent(LimitReached):
    """The key's money is used up; waiting a minute does not help, so SDKs must not retry."""

    type = "insufficient_quota"
    code = "insufficient_quota"


class LimitsUnavailable(Unavailable):
    """What other processes let in is not known: a limit that cannot be checked lets nobody in."""

    code = "limits_unavailable"


class Used(msgspec.Struct, frozen=True, gc=False):
    """What of the last minute counts, and the seconds until nothing of it does."""

    requests: int
    requests_reset: float
    tokens: int
    tokens_reset: float


def rate_headers(limits: Limits, used: Used) -> Headers:
    """`x-ratelimit-*` as OpenAI sends them, for the limits that there are."""
    headers: Headers = []
    if limits.rpm is not None:
        remaining = limits.rpm - used.requests
        headers += _headers(_REQUESTS, limits.rpm, remaining, used.requests_reset)
    if limits.tpm is not None:
        headers += _headers(_TOKENS, limits.tpm, limits.tpm - used.tokens, used.tokens_reset)
    return headers


def too_many_inside(limits: Limits) -> LimitReached:
    """As many requests run as may."""
    return LimitReached(f"This key may have {limits.concurrent} requests running at once.", 1.0, [])


def too_many_requests(limits: Limits, wait: float, headers: Headers) -> LimitReached:
    """The requests of this minute are used up."""
    seconds = math.ceil(wait)
    return LimitReached(
        f"This key may send {limits.rpm} requests per minute; try again in {seconds} s.",
        seconds,
        headers,
    )


def too_many_tokens(
    limits: Limits, used: int, tokens: int, wait: float, headers: Headers
) -> LimitReached:
    """The tokens of this minute are used up, or the request alone needs more than a minute's."""
    final = FINAL if tokens > (limits.tpm or 0) else []
    return LimitReached(
        f"This key may use {limits.tpm} tokens per minute; used {used}, this request needs about "
        f"{tokens}.",
        math.ceil(wait),
        [*headers, *final],
    )


def budget_spent(key: GatewayKey, spent: Spent) -> BudgetSpent:
    """The money of a day or a month is used up."""
    return BudgetSpent(
        f"The budget of key {key.name} for this {spent.period} is spent.", spent.seconds, [*FINAL]
    )


def _headers(names: Names, limit: int, remaining: int, reset: float) -> Headers:
    of_limit, of_remaining, of_reset = names
    return [
        (of_limit, b"%d" % limit),
        (of_remaining, b"%d" % remaining if remaining > 0 else b"0"),
        (of_reset, b"%ds" % math.ceil(reset)),
    ]
