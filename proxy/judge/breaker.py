"""Failures in; whether a judge may be asked now, out, so that a dead one costs few deadlines."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from proxy.judge.failures import Failed, Failure

NOT_ITS_FAULT = frozenset({
    Failure.ABORTED, Failure.TOO_LARGE, Failure.UNSUPPORTED, Failure.BREAKER_OPEN,
})  # fmt: skip
NO_CREDIT_SECONDS = 300.0
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Patience:
    """After how many failures in a row a judge is left alone, and for how long.

    `forgiving` judges are never left alone for good: their model's name and key are a client's.
    """

    failures: int = 3
    seconds: float = 30.0
    forgiving: bool = False


class Breaker:
    """Closed; open until a moment; then one probe decides. A wrong key keeps it open for good."""

    def __init__(self, patience: Patience, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._clock = clock
        self._failures = 0
        self._open_until = 0.0
        self._probing = False

    @property
    def open(self) -> bool:
        """Whether it was left alone and has not answered since; a probe alone changes nothing."""
        return self._open_until > 0

    @property
    def pause(self) -> float | None:
        """Seconds until it may be asked again; None when nobody knows."""
        left = self._open_until - self._clock()
        return left if 0 < left < _NEVER else None

    def refusal(self) -> Failure | None:
        """Why the judge must not be asked now; None lets this caller ask it."""
        if self._open_until == _NEVER:
            return Failure.DISABLED
        if self._clock() < self._open_until or self._probing:
            return Failure.BREAKER_OPEN
        self._probing = self.open
        return None

    def succeed(self) -> None:
        """It answered: closed again."""
        self._failures, self._open_until, self._probing = 0, 0.0, False

    def fail(self, failed: Failed) -> None:
        """It did not; what kind of failure decides how long it is left alone."""
        probing, self._probing = self._probing, False
        if failed.failure in NOT_ITS_FAULT:
            return
        self._failures += 1
        pause = self._pause(failed, probing)
        if pause is not None:
            self._open_until = max(self._open_until, self._clock() + pause)

    def _pause(self, failed: Failed, probing: bool) -> float | None:
        if failed.status in {401, 404} and not self._patience.forgiving:
            return _NEVER
        if failed.failure in {Failure.PAYMENT, Failure.UNAUTHORIZED}:
            return NO_CREDIT_SECONDS
        if failed.failure is Failure.RATE_LIMITED and failed.retry_after is not None:
            return failed.retry_after
        worn_out = probing or self._failures >= self._patience.failures
        return self._patience.seconds if worn_out else None
