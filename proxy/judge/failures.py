"""A provider's refusal in; why it failed, whether to try again and when, out.

The rows of the error tables of every dialect meet here. Bodies are looked at, never kept: a
validation error of TypeSafe echoes the user's text.
"""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

from proxy.wire import JSON, Headers


class Failure(StrEnum):
    """Why a judgment has no answer; the value is the ledger's outcome."""

    TIMEOUT = "timeout"
    ABORTED = "aborted"
    RATE_LIMITED = "rate_limited"
    UNAUTHORIZED = "unauthorized"
    PAYMENT = "payment"
    BAD_REQUEST = "bad_request"
    TOO_LARGE = "too_large"
    SERVER_ERROR = "server_error"
    NETWORK = "network"
    MALFORMED = "malformed"
    BREAKER_OPEN = "breaker_open"
    DISABLED = "disabled"
    UNSUPPORTED = "unsupported"
    INTERNAL = "internal"


RETRIED = frozenset({Failure.RATE_LIMITED, Failure.SERVER_ERROR, Failure.NETWORK})
"""Worth another attempt inside the deadline; a timeout has already spent it."""

_DAILY_ALLOCATION_GONE = 4006
_REQUEST_TOO_LARGE = 5021
_TOO_MANY_TOKENS = "max_tokens_exceeded"
_BY_STATUS = {
    401: Failure.UNAUTHORIZED,
    402: Failure.PAYMENT,
    403: Failure.UNAUTHORIZED,
    408: Failure.RATE_LIMITED,
    413: Failure.TOO_LARGE,
    429: Failure.RATE_LIMITED,
}


class Failed(Exception):
    """An attempt gave no usable answer; the message never holds any of its body."""

    def __init__(
        self, failure: Failure, *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(failure if status is None else f"{failure} ({status})")
        self.failure = failure
        self.status = status
        self.retry_after = retry_after


def classify(status: int, body: JSON, headers: Headers, now: float) -> Failed:
    """Read an error reply; `now` is the wall clock that an HTTP-date is compared with."""
    failure = _BY_STATUS.get(status)
    codes = _codes(body)
    if failure is None:
        failure = _by_class(status)
    if failure is Failure.BAD_REQUEST and codes & {_TOO_MANY_TOKENS, _REQUEST_TOO_LARGE}:
        failure = Failure.TOO_LARGE
    if failure is Failure.RATE_LIMITED and _DAILY_ALLOCATION_GONE in codes:
        failure = Failure.PAYMENT
    return Failed(failure, status=status, retry_after=retry_after(headers, now))


def _by_class(status: int) -> Failure:
    """What a status without a row of its own means; no answer and a redirection are no refusal."""
    if status < 400:
        return Failure.MALFORMED
    return Failure.SERVER_ERROR if status >= 500 else Failure.BAD_REQUEST


def retry_after(headers: Headers, now: float) -> float | None:
    """Seconds to wait: `retry-after-ms`, else `retry-after` as seconds or HTTP-date."""
    found = {name.lower(): value.decode("latin-1").strip() for name, value in headers}
    milliseconds = _number(found.get(b"retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = found.get(b"retry-after")
    seconds = _number(value)
    return seconds if seconds is not None else _until(value, now)


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None


def _until(value: str | None, now: float) -> float | None:
    try:
        moment = parsedate_to_datetime(value or "")
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.fromtimestamp(now, UTC)).total_seconds())


def _codes(body: JSON) -> set[JSON]:
    """Every `code`, `type` and `error_type` of the envelopes that decision servers use."""
    if not isinstance(body, dict):
        return set()
    envelopes = [body, body.get("detail"), body.get("error")]
    errors = body.get("errors")
    envelopes += errors if isinstance(errors, list) else []
    found: set[JSON] = set()
    for envelope in envelopes:
        if isinstance(envelope, dict):
            values = (envelope.get(name) for name in ("code", "type", "error_type"))
            found.update(value for value in values if isinstance(value, str | int))
    return found
