"""Settings come in; a gateway whose every part was handed its collaborators goes out."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.types import Lifespan
from structlog.typing import FilteringBoundLogger

from proxy.advise import Adviser
from proxy.background import Background
from proxy.dispatch import Dispatch
from proxy.draft import Drafter
from proxy.edge.admin import admin_routes
from proxy.edge.admit import Gate
from proxy.edge.auth import Door, RingKeys
from proxy.edge.decisions import decision_routes
from proxy.edge.exchange import Edge
from proxy.edge.explain import explain_routes
from proxy.edge.lookup import lookup_routes
from proxy.edge.memory import memory_routes
from proxy.edge.passthrough import Forward
from proxy.edge.routes import Extras, build_routes
from proxy.edge.triage import triage_routes
from proxy.judge.build import Around, Judges
from proxy.judge.embedded import Model
from proxy.judge.fused import GATE_MODEL, TurnJudge
from proxy.judge.wording import load_wordings
from proxy.keys.budget import month_start
from proxy.keys.keyfile import key_path
from proxy.keys.limiter import Limiter, check_workers
from proxy.keys.ring import KeyRing
from proxy.learner import Learner
from proxy.ledger.priced import Listeners, make_ledger
from proxy.ledger.prices import Prices
from proxy.ledger.spans import call_span, turn_span
from proxy.ledger.store import Ledger
from proxy.ledger.tally import Tally
from proxy.memory.gate.model import load_gate
from proxy.memory.near import Near, Remembered
from proxy.observe.capture import Capture
from proxy.observe.log import configure
from proxy.observe.metrics import Metrics
from proxy.observe.trace import NoTracer, Tracer, open_tracer
from proxy.settings import Settings
from proxy.shelf import Shelf
from proxy.state.memory import MemoryStore, Store
from proxy.tools.document import add_examples
from proxy.tools.lessons import Lessons
from proxy.tools.lexical import build_lexical
from proxy.tools.semantic import Semantic, has_semantic
from proxy.tools.toolbox import MakeIndex
from proxy.triage.build import History, build_triage
from proxy.triage.conduct import Conduct
from proxy.turn import Crew, Turn
from proxy.upstream.target import Targets
from proxy.upstream.transport import Transport
from proxy.ways import make_ways


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway that is ready to be served.

    `settle` waits for so many seconds for work beside answers, and then ends it.
    """

    app: Starlette
    gate: Gate
    turn: Turn
    ledger: Ledger
    metrics: Metrics
    ring: KeyRing
    triage: Conduct
    settle: Callable[[float], Awaitable[None]]


def build_gateway(
    settings: Settings,
    data: Path,
    transports: Mapping[str, Transport] | None = None,
    heard: Listeners | None = None,
) -> Gateway:
    """The composition root; `data` is the folder of the ledger and the keys.

    `transports` replaces the ways to an upstream by kind of target and `heard` is told of every
    row, both for demos and tests. Raises ConfigError for settings that cannot work.
    """
    ways = {**make_ways(settings), **(transports or {})}
    prices = Prices(settings.prices)
    metrics = Metrics()
    limiter, tracer = Limiter(), open_tracer(enabled=settings.tracing.enabled)
    tally = Tally(lambda: ledger.health)
    listeners = _make_listeners(limiter, tally, tracer, heard)
    ledger = make_ledger(settings.ledger, data, prices, listeners)
    metrics.registry.register(tally)
    ring = open_ring(settings, data)
    log = configure(settings.log)
    background = Background(log)
    models = _make_gate(settings, log)
    judges = Judges(settings, Around(ways, prices, ledger.record, log, os.environ, models))
    targets = Targets(settings)
    semantic = _make_semantic(settings, data, log)
    lessons = Lessons() if settings.prediction.learn else None
    shelf = Shelf(
        settings.deferral,
        settings.prediction,
        _make_index(settings, semantic),
        settings.caches.catalogue_bytes,
        lessons,
    )
    store = MemoryStore(settings.state.max_bytes, settings.state.ttl_seconds)
    dispatch = Dispatch(settings.upstream, ways, tracer if settings.tracing.enabled else None)
    turn_judge = _make_turn_judge(settings, judges, background)
    adviser = _make_adviser(settings, judges, turn_judge, store)
    spawn = background.spawn
    learner = Learner(lessons, _make_capture(settings, log), spawn)
    remembered = _make_memory(
        settings, Near(data, ways, turn_judge, store, spawn, ledger.record, log, os.environ)
    )
    service = remembered.service if remembered else None
    triage = build_triage(
        settings,
        History(judges.default, store, ways, ledger.record, spawn, metrics.registry, os.environ),
    )
    drafter = Drafter(settings, shelf, store, adviser, learner)
    turn = Turn(Crew(drafter, dispatch, ledger, metrics, service, triage))
    door = Door(RingKeys(ring))
    edge = Edge(settings.server, door, Gate(), metrics, log, limiter)
    forward = Forward(settings, ways, targets, ledger)

    parts = _Parts(
        settings, ways, ledger, limiter, ring, metrics, background, semantic, tracer, remembered
    )
    serving = settings.classification.serve_timeout_ms / 1000
    routes = [
        *admin_routes(edge, ledger),
        *explain_routes(edge, turn.explain),
        *lookup_routes(edge, shelf),
        *triage_routes(edge, triage.explain),
        *(memory_routes(edge, remembered, settings) if remembered else ()),
        *decision_routes(edge, judges, forward, serving),
    ]
    app = build_routes(edge, turn.chat, forward, Extras(routes, _make_lifespan(parts)))
    return Gateway(app, edge.gate, turn, ledger, metrics, ring, triage, background.drain)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What begins and ends with the application."""

    settings: Settings
    ways: Mapping[str, Transport]
    ledger: Ledger
    limiter: Limiter
    ring: KeyRing
    metrics: Metrics
    background: Background
    semantic: Semantic | None
    tracer: Tracer
    remembered: Remembered | None = None


def _make_lifespan(parts: _Parts) -> Lifespan[Starlette]:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await parts.ledger.start()
        if parts.remembered is not None:
            await parts.remembered.bank.start()
        await _restore_budgets(parts)
        async with asyncio.TaskGroup() as group:
            watches = [
                group.create_task(parts.metrics.watch_loop()),
                group.create_task(parts.ring.watch(parts.settings.keys.refresh_seconds)),
            ]
            yield
            for watch in watches:
                watch.cancel()
        await parts.background.drain(parts.settings.server.drain_seconds)
        if parts.remembered is not None:
            await parts.remembered.bank.aclose()
        if parts.semantic is not None:
            await asyncio.to_thread(parts.semantic.close)
        for transport in parts.ways.values():
            with suppress(OSError):
                await transport.aclose()
        await parts.ledger.aclose()
        await asyncio.to_thread(parts.tracer.close)

    return lifespan


async def _restore_budgets(parts: _Parts) -> None:
    """A restart refills no budget; without budgets the ledger need not be asked."""
    limits = [key.limits for key in parts.ring.keys]
    if any(limit.budget_day is not None or limit.budget_month is not None for limit in limits):
        parts.limiter.restore(await parts.ledger.spent(month_start(time.time())))


def open_ring(settings: Settings, data: Path) -> KeyRing:
    """The gateway keys, read once. Raises ConfigError for a broken file or limits that can't hold.

    Limits are counted per process, so keys with limits need a single worker.
    """
    workers = settings.server.workers
    ring = KeyRing(
        key_path(settings.keys.file, data), check=lambda keys: check_workers(workers, keys)
    )
    ring.load()
    return ring


def _make_listeners(
    limiter: Limiter, tally: Tally, tracer: Tracer, heard: Listeners | None
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


def _make_index(settings: Settings, semantic: Semantic | None) -> MakeIndex:
    """How catalogues are indexed: with the operator's examples, by meaning where that is had."""
    build: MakeIndex = semantic.build if semantic else build_lexical
    examples = settings.prediction.examples
    return (lambda documents: build(add_examples(documents, examples))) if examples else build


def _make_capture(settings: Settings, log: FilteringBoundLogger) -> Capture | None:
    """The file for searches that ended in a call, when an operator wants one."""
    path = settings.prediction.capture
    if path is None:
        return None
    return Capture(Path(path), lambda reason: log.warning("capture_failed", reason=reason))


def _make_semantic(settings: Settings, data: Path, log: FilteringBoundLogger) -> Semantic | None:
    """The ranker by meaning, when it is wanted and its extra is installed."""
    if settings.prediction.ranker == "lexical" or not has_semantic():
        return None
    return Semantic(data / "vectors", lambda reason: log.warning("semantic_off", reason=reason))


def _make_turn_judge(
    settings: Settings, judges: Judges, background: Background
) -> TurnJudge | None:
    """Who judges what users say, when anybody wants to know."""
    own = settings.classification
    if settings.memory.mode == "off" and not (own.enabled and own.tool_selection.enabled):
        return None
    folder = Path(own.questions) if own.questions else None
    return TurnJudge(judges.default, own, load_wordings(folder), background.spawn)


def _make_adviser(
    settings: Settings, judges: Judges, turn_judge: TurnJudge | None, store: Store
) -> Adviser | None:
    """Who asks the judge about tools, when that is wanted."""
    own = settings.classification
    if turn_judge is None or not own.enabled or not own.tool_selection.enabled:
        return None
    return Adviser(judges.default, turn_judge, own.tool_selection, store)


def _make_memory(settings: Settings, near: Near) -> Remembered | None:
    """Memory, when it is on: only then is its store's library loaded."""
    if settings.memory.mode == "off":
        return None
    from proxy.memory.build import build_memory  # noqa: PLC0415 - SQLAlchemy: 0.3 s, 25 MB

    return build_memory(settings, near)


def _make_gate(settings: Settings, log: FilteringBoundLogger) -> Mapping[str, Model]:
    """The built-in answer to whether something is to be remembered."""
    if settings.memory.mode == "off":
        return {}
    return {GATE_MODEL: load_gate(lambda reason: log.warning("gate_lexical", reason=reason))}
