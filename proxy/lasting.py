"""Settings come in; what a gateway keeps while they change goes out: books, keys, connections.

Everything else is built anew by `proxy/app.py` when the configuration changes.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structlog.typing import FilteringBoundLogger

from proxy.background import Background
from proxy.edge.admit import Gate
from proxy.errors import ConfigError
from proxy.judge.bill import Bill
from proxy.judge.embedded import Model
from proxy.judge.fused import GATE_MODEL
from proxy.judge.tally import JudgmentTally
from proxy.keys.budget import month_start
from proxy.keys.keyfile import key_path
from proxy.keys.limiter import Admission, Limiter, check_workers
from proxy.keys.ring import KeyRing
from proxy.ledger.priced import Listeners, PricedLedger, make_ledger
from proxy.ledger.prices import Prices, find_standins
from proxy.ledger.spans import call_span, turn_span
from proxy.ledger.tally import Tally
from proxy.memory.gate.model import load_gate
from proxy.memory.tally import RunTally
from proxy.observe.log import configure
from proxy.observe.metrics import Metrics
from proxy.observe.trace import NoTracer, Tracer, open_tracer
from proxy.settings import Settings, State
from proxy.state.memory import MemoryStore, Store
from proxy.tools.lessons import Lessons
from proxy.tools.once import Once
from proxy.tools.semantic import Semantic, UniversalEncoder, has_semantic, load_universal
from proxy.tools.tokens import keep_vocabulary
from proxy.triage.tally import TriageTally
from proxy.upstream.transport import Transport
from proxy.ways import make_ways

if TYPE_CHECKING:  # SQLAlchemy: 0.3 s and 25 MB, only where memory is on; redis is an extra
    from proxy.keys.shared import Shared
    from proxy.memory.bank import Bank

MISSING = "state.url: needs the extra `redis`: pip install 'usher-gateway[redis]'"

Spendings = Callable[[float], Awaitable[Sequence[tuple[str, int, int]]]]
"""What each key cost per day since a time, as the ledger says."""

FIXED = (
    "server.host",
    "server.port",
    "server.workers",
    "server.client_seconds",
    "server.drain_seconds",
    "server.insecure",
    "upstream.transport",
    "prediction.ranker",
    "memory.url",
    "memory.token_limit",
    "memory.retention_days",
    "ledger",
    "keys",
    "state",
    "log",
    "tracing",
)
"""Settings and sections that what lasts was made with: a change of them needs a restart."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """What begins and ends with the process; `settings` are those of its start."""

    settings: Settings
    data: Path
    ways: Mapping[str, Transport]
    prices: Prices
    ledger: PricedLedger
    limiter: Admission
    local: Limiter
    shared: "Shared | None"
    ring: KeyRing
    gate: Gate
    metrics: Metrics
    judged: JudgmentTally
    bill: Bill
    memory_runs: RunTally
    triaged: TriageTally
    tracer: Tracer
    log: FilteringBoundLogger
    background: Background
    semantic: Semantic | None
    lessons: Lessons
    store: Store
    models: Mapping[str, Model]
    bank: "Bank | None"

    @property
    def fixed(self) -> Sequence[str]:
        """What cannot change; memory is only switched on by a start, which opens its database."""
        return FIXED if self.bank is not None else (*FIXED, "memory.mode")

    def cache_bytes(self) -> dict[str, int]:
        """What the caches that last have in memory, by name; Redis is not ours to measure."""
        sizes = {
            "lessons": self.lessons.bytes,
            "vectors": self.semantic.memory_bytes if self.semantic is not None else 0,
        }
        if isinstance(self.store, MemoryStore):
            sizes["state"] = self.store.bytes
        return sizes


def open_lasting(
    settings: Settings,
    data: Path,
    transports: Mapping[str, Transport] | None = None,
    heard: Listeners | None = None,
) -> Lasting:
    """The parts, not yet started. Raises ConfigError for settings that cannot work.

    `transports` replaces the ways to an upstream by kind of target; `heard` is told of every row.
    """
    metrics, log = Metrics(), configure(settings.log)
    background = Background(log)
    metrics.background.set_function(lambda: len(background))

    async def spendings(since: float) -> Sequence[tuple[str, int, int]]:
        return await ledger.spent(since)

    shared = _open_shared(settings, log, metrics, spendings)
    local = Limiter()
    limiter: Admission = shared.limiter if shared else local
    tracer = open_tracer(enabled=settings.tracing.enabled)
    prices = Prices(settings.prices, standins=find_standins(settings))
    tally = Tally(lambda: ledger.health)
    ledger = make_ledger(
        settings.ledger, data, prices, _make_listeners(limiter, tally, tracer, heard)
    )
    metrics.registry.register(tally)
    encoder = Once(load_universal)
    return Lasting(
        settings=settings,
        data=data,
        ways=make_ways(settings, transports),
        prices=prices,
        ledger=ledger,
        limiter=limiter,
        local=local,
        shared=shared,
        ring=open_ring(settings, data, log, metrics),
        gate=Gate(),
        metrics=metrics,
        judged=JudgmentTally(metrics.registry),
        bill=Bill(),
        memory_runs=RunTally(metrics.registry),
        triaged=TriageTally(metrics.registry),
        tracer=tracer,
        log=log,
        background=background,
        semantic=_make_semantic(settings, data, log, encoder),
        lessons=Lessons(),
        store=shared.store if shared else _make_store(settings.state),
        models=_make_gate(settings, log, encoder),
        bank=_open_bank(settings, data),
    )


@asynccontextmanager
async def live(
    parts: Lasting, further: Sequence[Callable[[], Coroutine[Any, Any, None]]] = ()
) -> AsyncIterator[None]:
    """Start the parts, run their watches and `further` ones, and end everything in order."""
    await parts.ledger.start()
    if parts.bank is not None:
        await parts.bank.start()
    if parts.shared is None:
        await _restore_budgets(parts)
    else:
        await parts.shared.start()
    async with asyncio.TaskGroup() as group:
        refresh = parts.settings.keys.refresh_seconds
        watches = [
            group.create_task(watch)
            for watch in (
                parts.metrics.watch_loop(),
                parts.ring.watch(refresh),
                *((parts.shared.limiter.watch(),) if parts.shared else ()),
                *((parts.bank.watch(),) if parts.bank else ()),
                *((asyncio.to_thread(keep_vocabulary),) if parts.bank else ()),
                *(begin() for begin in further),
            )
        ]
        yield
        for watch in watches:
            watch.cancel()
    await parts.background.drain(parts.settings.server.drain_seconds)
    if parts.shared is not None:
        await parts.shared.aclose()
    if parts.bank is not None:
        await parts.bank.aclose()
    if parts.semantic is not None:
        await asyncio.to_thread(parts.semantic.close)
    for transport in parts.ways.values():
        with suppress(OSError):
            await transport.aclose()
    await parts.ledger.aclose()
    await asyncio.to_thread(parts.tracer.close)


def open_ring(
    settings: Settings,
    data: Path,
    log: FilteringBoundLogger | None = None,
    metrics: Metrics | None = None,
) -> KeyRing:
    """The gateway keys, read once. Raises ConfigError for a broken file or limits that can't hold.

    Limits are counted per process unless there is a shared store, so without one keys with limits
    need a single worker.
    """
    workers = settings.server.workers if settings.state.url is None else 1
    ring = KeyRing(
        key_path(settings.keys.file, data),
        check=lambda keys: check_workers(workers, keys),
        log=log,
        count=metrics.upkeep.key_reloads.add if metrics else None,
    )
    if metrics is not None:
        metrics.upkeep.keys_unenforced.set_function(lambda: ring.unenforced)
    ring.load()
    if ring.open and settings.keys.file is not None:
        raise ConfigError(
            f"keys.file: {ring.path} holds no keys, so nobody could be told from anybody; make one "
            "with `usher key new`, or leave keys.file away to serve this machine without keys",
            param="keys.file",
        )
    return ring


async def _restore_budgets(parts: Lasting) -> None:
    """A restart refills no budget; without budgets the ledger need not be asked."""
    limits = [key.limits for key in parts.ring.keys]
    if any(limit.budget_day is not None or limit.budget_month is not None for limit in limits):
        parts.local.restore(await parts.ledger.spent(month_start(time.time())))


def _make_store(settings: State) -> MemoryStore:
    return MemoryStore(settings.max_bytes, settings.ttl_seconds)


def _open_shared(
    settings: Settings, log: FilteringBoundLogger, metrics: Metrics, spendings: Spendings
) -> "Shared | None":
    """What all processes share, where an operator named a server for it."""
    if settings.state.url is None:
        return None
    try:
        from proxy.keys.shared import open_shared  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise ConfigError(MISSING, param="state.url") from None
    return open_shared(settings.state, log, metrics, spendings)


def _make_listeners(
    limiter: Admission, tally: Tally, tracer: Tracer, heard: Listeners | None
) -> Listeners:
    further = heard or Listeners()
    spans = isinstance(tracer, NoTracer)
    return Listeners(
        calls=(
            limiter.charge,
            tally.count,
            *(() if spans else (lambda row: tracer.emit(call_span(row)),)),
            *further.calls,
        ),
        turns=(*(() if spans else (lambda turn: tracer.emit(turn_span(turn)),)), *further.turns),
    )


def _make_semantic(
    settings: Settings, data: Path, log: FilteringBoundLogger, encoder: Once[UniversalEncoder]
) -> Semantic | None:
    """The ranker by meaning, when it is wanted and its extra is installed."""
    if settings.prediction.ranker == "lexical" or not has_semantic():
        return None
    return Semantic(
        data / "vectors",
        lambda why: log.warning("semantic_off", reason=why),
        load=encoder,
        share=settings.prediction.vectors_share,
        ready=lambda tools, seconds: log.info("vectors_ready", tools=tools, cpu_seconds=seconds),
    )


def _make_gate(
    settings: Settings, log: FilteringBoundLogger, encoder: Once[UniversalEncoder]
) -> Mapping[str, Model]:
    """The built-in answer to whether something is to be remembered."""
    if settings.memory.mode == "off":
        return {}
    return {GATE_MODEL: load_gate(lambda why: log.warning("gate_lexical", reason=why), encoder)}


def _open_bank(settings: Settings, data: Path) -> "Bank | None":
    """Where memories are, when memory is on: only then is its store's library loaded."""
    if settings.memory.mode == "off":
        return None
    from proxy.memory.build import open_bank  # noqa: PLC0415 - SQLAlchemy: 0.3 s, 25 MB

    return open_bank(settings, data)
