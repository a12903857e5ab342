"""Requests of keys in; a lease for each that is within the limits out, or a 429."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from proxy.errors import ConfigError, Forbidden
from proxy.keys.budget import DAY_SECONDS, Budget
from proxy.keys.key import NO_LIMITS, GatewayKey, Limits
from proxy.keys.refusal import (
    Used,
    budget_spent,
    rate_headers,
    too_many_inside,
    too_many_requests,
    too_many_tokens,
)
from proxy.keys.window import Window
from proxy.ledger.usage import Row
from proxy.wire import Headers


class Meter:
    """What one key uses at the moment."""

    __slots__ = ("budget", "inside", "requests", "reserved", "tokens")

    def __init__(self) -> None:
        self.inside = 0
        self.reserved = 0
        self.requests = Window()
        self.tokens = Window()
        self.budget = Budget()


class Lease:
    """A request that is inside; `leave` exactly when it is over, however it ended."""

    __slots__ = ("_meter", "_reserved", "headers")

    def __init__(self, meter: Meter | None, reserved: int, headers: Headers) -> None:
        self._meter = meter
        self._reserved = reserved
        self.headers = headers

    def leave(self) -> None:
        """Give the place back; a second time does nothing."""
        meter = self._meter
        if meter is not None:
            self._meter = None
            meter.inside -= 1
            meter.reserved -= self._reserved


FREE = Lease(None, 0, [])
"""The lease of a caller without limits."""


class Admission(Protocol):
    """Who lets requests of keys in, within their limits."""

    async def admit(self, key: GatewayKey, tokens: int = 0) -> Lease:
        """Let a request in that will use about so many tokens. Raises LimitReached."""

    def charge(self, row: Row) -> None:
        """Count what a call used and cost; a listener of the ledger."""


class Limiter:
    """Limits of one process, exact because nothing in here awaits.

    Rates run on a monotonic clock, budgets on UTC days. Tokens count when an answer reports
    them; until then the caller's estimate is reserved.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._wall = wall
        self._meters: dict[str, Meter] = {}

    async def admit(self, key: GatewayKey, tokens: int = 0) -> Lease:
        """The same as `enter`, for who may have to wait for others."""
        return self.enter(key, tokens)

    def enter(self, key: GatewayKey, tokens: int = 0) -> Lease:
        """Let a request in that will use about so many tokens. Raises LimitReached."""
        limits = key.limits
        if limits is NO_LIMITS or limits == NO_LIMITS:
            return FREE
        meter = self._meter(key.name)
        now = self._clock()
        meter.requests.move(now)
        meter.tokens.move(now)
        self._check_budget(key, meter)
        if limits.concurrent is not None and meter.inside >= limits.concurrent:
            raise too_many_inside(limits)
        _check_requests(limits, meter, now)
        _check_tokens(limits, meter, now, tokens)
        meter.inside += 1
        meter.reserved += tokens
        meter.requests.add(now, 1)
        return Lease(meter, tokens, rate_headers(limits, _used(meter, now)))

    def charge(self, row: Row) -> None:
        """Count what a call used and cost; a listener of the ledger."""
        meter = self._meters.get(row.key)
        if meter is None:
            return
        tokens = (row.prompt_tokens or 0) + (row.completion_tokens or 0)
        if tokens:
            meter.tokens.add(self._clock(), tokens)
        if row.cost_nano_usd:
            meter.budget.add(int(row.started_at // DAY_SECONDS), row.cost_nano_usd)

    def restore(self, spent: Iterable[tuple[str, int, int]]) -> None:
        """Take over what the ledger knows of this month, so that a restart refills no budget."""
        for name, day, nano_usd in spent:
            self._meter(name).budget.add(day, nano_usd)

    def _meter(self, name: str) -> Meter:
        meter = self._meters.get(name)
        if meter is None:
            meter = self._meters[name] = Meter()
        return meter

    def _check_budget(self, key: GatewayKey, meter: Meter) -> None:
        limits = key.limits
        if limits.budget_day is None and limits.budget_month is None:
            return
        spent = meter.budget.exceeded(self._wall(), limits.budget_day, limits.budget_month)
        if spent is not None:
            raise budget_spent(key, spent)


def check_model(key: GatewayKey, model: str, deployment: str | None = None) -> None:
    """Raises Forbidden when the key may not use a model.

    Azure's paths name a `deployment` besides the body's model, and there the path counts: the key
    needs both.
    """
    names = [name for name in (model, deployment) if name]
    if not names and not key.allows(""):
        text = f"The key {key.name} is for some models, and this request names none."
        raise Forbidden(text, param="model")
    for name in names:
        if not key.allows(name):
            text = f"The key {key.name} may not use the model {name[:100]}."
            raise Forbidden(text, param="model")


def check_workers(workers: int, keys: Sequence[GatewayKey]) -> None:
    """Raises ConfigError when processes would each allow the whole of a limit."""
    limited = [key.name for key in keys if key.revoked_at is None and key.limits != NO_LIMITS]
    if workers > 1 and limited:
        raise ConfigError(
            f"server.workers: each of {workers} processes counts by itself, so the limits of key "
            f"{limited[0]} would hold {workers} times; name a Redis that counts for all in "
            "state.url, run one worker, or take the limits away",
            param="server.workers",
        )


def _used(meter: Meter, now: float) -> Used:
    return Used(
        meter.requests.total,
        meter.requests.seconds_until_empty(now),
        meter.tokens.total + meter.reserved,
        meter.tokens.seconds_until_empty(now),
    )


def _check_requests(limits: Limits, meter: Meter, now: float) -> None:
    if limits.rpm is not None and meter.requests.total >= limits.rpm:
        wait = meter.requests.seconds_until(now, limits.rpm - 1)
        raise too_many_requests(limits, wait, rate_headers(limits, _used(meter, now)))


def _check_tokens(limits: Limits, meter: Meter, now: float, tokens: int) -> None:
    if limits.tpm is None:
        return
    used = meter.tokens.total + meter.reserved
    if used < limits.tpm and used + tokens <= limits.tpm:
        return
    room = max(0, limits.tpm - meter.reserved - max(1, tokens))
    wait = max(1.0, meter.tokens.seconds_until(now, room))
    headers = rate_headers(limits, _used(meter, now))
    raise too_many_tokens(limits, used, tokens, wait, headers)
