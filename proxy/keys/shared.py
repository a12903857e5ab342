"""Requests of keys in; leases and refusals out, exact over all processes that share a store.

All that counts is in the store and is changed by one script (limits.lua), so that no two processes
ever let in the same last request. A lease ends by itself when the process that held it was killed.
Without the store nobody is let in whose limits it holds: a limit that cannot be checked is closed.
"""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from structlog.typing import FilteringBoundLogger

from proxy.keys.budget import DAY_SECONDS, Spent, month_of, month_start, until_next
from proxy.keys.key import NO_LIMITS, GatewayKey, Limits
from proxy.keys.limiter import FREE, Lease
from proxy.keys.question import Batch, Held, Sums, Wish
from proxy.keys.refusal import (
    LimitsUnavailable,
    Used,
    budget_spent,
    rate_headers,
    too_many_inside,
    too_many_requests,
    too_many_tokens,
)
from proxy.ledger.usage import Row
from proxy.observe.metrics import Metrics
from proxy.settings import State
from proxy.state.redis import Link, RedisStore, StateDown
from proxy.wire import Headers

RENEW_SECONDS = 10.0
SECOND_LOOK_SECONDS = 0.02
"""A place that is given back in one process is free in another a round trip later."""

UNKNOWN = "The limits of this key cannot be checked at the moment."

Spendings = Sequence[tuple[str, int, int]]


@dataclass(frozen=True, slots=True)
class Shared:
    """What all processes of a deployment have in common."""

    link: Link
    limiter: "SharedLimiter"
    store: RedisStore

    async def start(self) -> None:
        """Connect before the first request has to; a server that is away is asked again then."""
        with suppress(StateDown):
            await self.link.ask("limits", lambda server: server.ping())

    async def aclose(self) -> None:
        """Say the last and let go."""
        await self.limiter.aclose()
        await self.link.aclose()


def open_shared(
    settings: State,
    log: FilteringBoundLogger,
    metrics: Metrics,
    spendings: Callable[[float], Awaitable[Spendings]],
) -> Shared:
    """The parts around one connection, not yet used. Raises ConfigError for a URL of no use."""
    link = Link(settings, log, metrics)
    return Shared(link, SharedLimiter(link, spendings), RedisStore(link, settings.ttl_seconds))


class SharedLease(Lease):
    """A request that is inside, wherever it is counted."""

    __slots__ = ("_give_back",)

    def __init__(self, give_back: Callable[[], None], headers: Headers) -> None:
        super().__init__(None, 0, headers)
        self._give_back: Callable[[], None] | None = give_back

    def leave(self) -> None:
        """Give the place back; a second time does nothing."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()


class SharedLimiter:
    """Limits of all processes together.

    `spendings` asks the ledger what keys cost per day since a time, for a store that knows
    nothing of this month. `clock` replaces the store's own in tests.
    """

    def __init__(
        self,
        link: Link,
        spendings: Callable[[float], Awaitable[Spendings]],
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._link = link
        self._spendings = spendings
        self._wall = wall
        self._clock = clock
        self._script = Path(__file__).with_name("limits.lua").read_text(encoding="utf-8")
        self._known: dict[str, Limits] = {}
        self._running: dict[str, dict[str, int]] = {}
        self._pending: dict[str, Batch] = {}
        self._unsure: deque[tuple[str, Batch]] = deque()
        self._wake = asyncio.Event()
        self._restoring = asyncio.Lock()
        self._renewing = False

    async def admit(self, key: GatewayKey, tokens: int = 0) -> Lease:
        """Let a request in that will use about so many tokens.

        Raises LimitReached, or LimitsUnavailable while the store is away.
        """
        if key.limits == NO_LIMITS:
            return FREE
        self._known[key.name] = key.limits
        held = (secrets.token_hex(8), tokens)
        if self._link.resting:
            self._link.miss("limits")
            raise LimitsUnavailable(UNKNOWN, retry_after=self._link.rest_seconds)
        try:
            headers = await self._enter(key, held)
        except BaseException:
            self._leave(key.name, held)  # it may have been let in before it was refused or gone
            raise
        self._running.setdefault(key.name, {})[held[0]] = tokens
        return SharedLease(lambda: self._leave(key.name, held), headers)

    def charge(self, row: Row) -> None:
        """Count what a call used and cost; a listener of the ledger."""
        limits = self._known.get(row.key)
        if limits is None:
            return
        batch = self._batch(row.key)
        if limits.tpm is not None:
            batch.tokens += (row.prompt_tokens or 0) + (row.completion_tokens or 0)
        if row.cost_nano_usd:
            day = int(row.started_at // DAY_SECONDS)
            batch.costs[day] = batch.costs.get(day, 0) + row.cost_nano_usd

    async def watch(self) -> None:
        """Say what was used and given back, and that the rest still runs; until cancelled."""
        loop = asyncio.get_running_loop()
        renew_at = loop.time() + RENEW_SECONDS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(renew_at):
                    await self._wake.wait()
            due = loop.time() >= renew_at
            if due:
                renew_at = loop.time() + RENEW_SECONDS
            self._wake.clear()
            if not await self._settle(renew=due):
                await asyncio.sleep(self._link.rest_seconds)
                self._wake.set()

    async def aclose(self) -> None:
        """Say the last, if anybody listens."""
        await self._settle(renew=False)

    async def _enter(self, key: GatewayKey, held: Held) -> Headers:
        verdict, numbers = await self._ask(key, held)
        if verdict == "unknown":
            async with self._restoring:
                verdict, numbers = await self._ask(key, held)
                if verdict == "unknown":
                    await self._restore(key.name)
                    verdict, numbers = await self._ask(key, held)
        if verdict == "inside":
            await asyncio.sleep(SECOND_LOOK_SECONDS)
            verdict, numbers = await self._ask(key, held)
        if verdict in {"day", "month"}:
            raise budget_spent(key, Spent(verdict, until_next(verdict, self._wall())))
        limits = key.limits
        wait, requests, requests_reset, tokens, tokens_reset = numbers
        used = Used(int(requests), requests_reset, int(tokens), tokens_reset)
        headers = rate_headers(limits, used)
        match verdict:
            case "inside":
                raise too_many_inside(limits)
            case "requests":
                raise too_many_requests(limits, wait, headers)
            case "tokens":
                raise too_many_tokens(limits, used.tokens, held[1], wait, headers)
            case "in":
                return headers
        raise LimitsUnavailable(UNKNOWN)

    async def _ask(self, key: GatewayKey, held: Held) -> tuple[str, tuple[float, ...]]:
        limits, today = key.limits, int(self._wall() // DAY_SECONDS)
        wish = Wish(
            held,
            today,
            month_of(today),
            limits.rpm,
            limits.tpm,
            limits.concurrent,
            limits.budget_day,
            limits.budget_month,
        )
        # A lease that is said to be over before it is said to be running would come back.
        batch = None if self._renewing else self._pending.pop(key.name, None)
        try:
            answer = await self._tell(key.name, batch or Batch(), enter=wish)
        except StateDown as down:
            raise LimitsUnavailable(UNKNOWN, retry_after=down.retry_after) from None
        return answer[0].decode(), tuple(float(number) for number in answer[1:])

    async def _restore(self, name: str) -> None:
        """Tell the store what the ledger knows of this month, after all that waits to be said."""
        await self._settle(renew=False)
        now = self._wall()
        sums: dict[str, int] = {}
        for key, day, nano in await self._spendings(month_start(now)):
            if key == name:
                for field in (f"d{day}", f"m{month_of(day)}"):
                    sums[field] = sums.get(field, 0) + nano
        month = month_of(int(now // DAY_SECONDS))
        known = Sums(month, [(field, str(nano)) for field, nano in sums.items()])
        with suppress(StateDown):
            await self._tell(name, Batch(), ledger=known)

    async def _settle(self, *, renew: bool) -> bool:
        """Say everything that waits; False when it could not be said."""
        waiting, self._pending = self._pending, {}
        self._unsure.extend(waiting.items())
        running = [name for name, leases in self._running.items() if leases] if renew else []
        try:
            for _ in range(len(self._unsure)):
                await self._tell(*self._unsure.popleft())
            self._renewing = bool(running)
            for name in running:
                await self._tell(name, Batch(), renew=True)
        except StateDown:
            return False
        finally:
            self._renewing = False
        return True

    async def _tell(
        self,
        name: str,
        batch: Batch,
        *,
        enter: Wish | None = None,
        ledger: Sums | None = None,
        renew: bool = False,
    ) -> list[Any]:
        """Run the script; a batch that may not have arrived is kept, and said again."""
        question = batch.question()
        question.enter, question.ledger, question.now = enter, ledger, self._clock()
        if renew:
            question.running = list(self._running.get(name, {}).items())
        place = f"{self._link.prefix}:{{{name}}}"
        parts = ("requests", "tokens", "inside", "reserved", "spent", f"batch:{batch.id}")
        keys = [f"{place}:{part}" for part in parts]
        text = msgspec.json.encode(question)
        try:
            answer: list[Any] = await self._link.run("limits", self._script, keys, text)
        except BaseException:
            if batch.left or batch.tokens or batch.costs:
                self._unsure.append((name, batch))
            raise
        return answer

    def _leave(self, name: str, held: Held) -> None:
        self._running.get(name, {}).pop(held[0], None)
        self._batch(name).left.append(held)

    def _batch(self, name: str) -> Batch:
        self._wake.set()
        batch = self._pending.get(name)
        if batch is None:
            batch = self._pending[name] = Batch()
        return batch
