"""Settings come in; a gateway whose every part was handed its collaborators goes out."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
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
from proxy.edge.forgetful import no_memory_routes
from proxy.edge.lookup import lookup_routes
from proxy.edge.memory import memory_routes
from proxy.edge.page import page_routes
from proxy.edge.passthrough import Forward
from proxy.edge.routes import Application, Extras, build_routes
from proxy.edge.triage import triage_routes
from proxy.errors import ConfigError
from proxy.judge.build import Around, Judges
from proxy.judge.fused import TurnJudge
from proxy.judge.wording import Wordings, load_wordings
from proxy.keys.ring import KeyRing
from proxy.lasting import Lasting, live, open_lasting
from proxy.learner import Learner
from proxy.ledger.priced import Listeners
from proxy.ledger.prices import find_standins
from proxy.ledger.store import Ledger
from proxy.ledger.usage import Row
from proxy.memory.near import Near, Remembered
from proxy.observe.capture import Capture
from proxy.observe.metrics import Metrics
from proxy.reload import Followed, Reloader, fingerprint
from proxy.settings import Settings
from proxy.shelf import Shelf
from proxy.state.memory import Store
from proxy.tools.document import add_examples
from proxy.tools.lexical import build_lexical
from proxy.tools.semantic import Semantic
from proxy.tools.toolbox import MakeIndex
from proxy.triage.build import History, build_triage
from proxy.triage.conduct import Conduct
from proxy.turn import Crew, Turn
from proxy.upstream.target import Targets
from proxy.upstream.transport import Transport


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway that is ready to be served.

    `reload` serves new requests by other settings, `hangup` looks for them at once, and `settle`
    waits for so many seconds for work beside answers, and then ends it.
    """

    app: Application
    gate: Gate
    turn: Turn
    ledger: Ledger
    metrics: Metrics
    ring: KeyRing
    triage: Conduct
    reload: Callable[[Settings], Awaitable[None]]
    hangup: Callable[[], None]
    settle: Callable[[float], Awaitable[None]]


def build_gateway(
    settings: Settings,
    data: Path,
    transports: Mapping[str, Transport] | None = None,
    heard: Listeners | None = None,
    followed: Followed | None = None,
) -> Gateway:
    """The composition root; `data` is the folder of the ledger and the keys.

    `transports` replaces the ways to an upstream by kind of target and `heard` is told of every
    row, both for demos and tests. The configuration is read again when `followed` changes. Raises
    ConfigError for settings that cannot work.
    """
    lasting = open_lasting(settings, data, transports, heard)
    serving = assemble(lasting, settings)
    current = Current(lasting, serving)
    reloader = Reloader(followed, settings, lasting.fixed, current.reload) if followed else None
    watches = (lambda: reloader.watch(lasting.log, lasting.metrics),) if reloader else ()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with live(lasting, watches):
            yield

    serving.app.router.lifespan_context = lifespan
    return Gateway(
        app=serving.app,
        gate=lasting.gate,
        turn=serving.turn,
        ledger=lasting.ledger,
        metrics=lasting.metrics,
        ring=lasting.ring,
        triage=serving.triage,
        reload=current.reload,
        hangup=reloader.hurry if reloader else lambda: None,
        settle=lasting.background.drain,
    )


@dataclass(frozen=True, slots=True)
class Serving:
    """What answers requests by one state of the settings."""

    settings: Settings
    app: Application
    turn: Turn
    triage: Conduct
    shelf: Shelf
    judges: Judges


class Current:
    """What serves now.

    The first application stays the one that the server knows; it hands new requests to the parts
    of the newest. A running request keeps those that it began with.
    """

    def __init__(self, lasting: Lasting, serving: Serving) -> None:
        self._lasting = lasting
        self._app = serving.app
        self._serve(serving)

    async def reload(self, settings: Settings) -> None:
        """Build everything beside the event loop, then swap. UsherError changes nothing.

        A start without an upstream is a trial, which the stand-in answers; people who talk to a
        model must not be answered by it from one moment to the next, as when a file is emptied.
        """
        if Targets(settings).is_trial and not Targets(self._serving.settings).is_trial:
            raise ConfigError("no upstream is configured any more; restart to serve the stand-in")
        new = await asyncio.to_thread(assemble, self._lasting, settings, self._serving)
        self._lasting.prices.adopt(settings.prices, find_standins(settings))
        self._app.adopt(new.app)
        self._serve(new)

    def _serve(self, serving: Serving) -> None:
        """Metrics show what serves now, and not what a reload has replaced."""
        self._serving = serving
        lasting, metrics = self._lasting, self._lasting.metrics
        metrics.upkeep.config_hash.set(fingerprint(serving.settings))
        metrics.breakers.follow(serving.judges.breakers)
        metrics.cache_bytes.follow(
            lambda: {"catalogues": serving.shelf.bytes, **lasting.cache_bytes()}
        )


def assemble(lasting: Lasting, settings: Settings, before: Serving | None = None) -> Serving:
    """The parts that follow the settings, around those that last.

    Prepared catalogues of what served `before` are kept where they would come out the same.
    """
    ways, ledger, log, store = lasting.ways, lasting.ledger, lasting.log, lasting.store
    spawn = lasting.background.spawn
    judges = Judges(settings, _make_around(lasting))
    shelf = _keep_shelf(settings, before) or _make_shelf(settings, lasting)
    dispatch = Dispatch(
        settings.upstream, ways, lasting.tracer if settings.tracing.enabled else None
    )
    turn_judge = _make_turn_judge(settings, judges, lasting.background)
    adviser = _make_adviser(settings, judges, turn_judge, store)
    lessons = lasting.lessons if settings.prediction.learn else None
    learner = Learner(lessons, _make_capture(settings, log), spawn)
    near = Near(
        lasting.data,
        ways,
        turn_judge,
        store,
        spawn,
        ledger.record,
        log,
        os.environ,
        lasting.memory_runs,
        lasting.bank,
    )
    remembered = _make_memory(settings, near)
    history = History(
        judges.default,
        store,
        ways,
        ledger.record,
        spawn,
        lasting.triaged,
        os.environ,
        lasting.prices.window,
    )
    triage = build_triage(settings, history)
    drafter = Drafter(settings, shelf, store, adviser, learner)
    service = remembered.service if remembered else None
    turn = Turn(Crew(drafter, dispatch, ledger, lasting.metrics, service, triage, lasting.bill))
    edge = Edge(
        settings.server,
        Door(RingKeys(lasting.ring)),
        lasting.gate,
        lasting.metrics,
        log,
        lasting.limiter,
    )
    forward = Forward(settings, ways, Targets(settings), ledger)
    routes = [
        *admin_routes(edge, ledger),
        *explain_routes(edge, turn.explain),
        *lookup_routes(edge, shelf),
        *triage_routes(edge, triage.explain),
        *(page_routes(edge, remembered, settings, ledger) if remembered else ()),
        *(
            memory_routes(edge, remembered, settings, ledger)
            if remembered
            else no_memory_routes(edge)
        ),
        *decision_routes(edge, judges, forward, settings.classification.serve_timeout_ms / 1000),
    ]
    app = build_routes(edge, turn.chat, forward, Extras(routes))
    return Serving(settings, app, turn, triage, shelf, judges)


def _make_around(lasting: Lasting) -> Around:
    """What judges work with; their rows are counted on the way to the ledger."""

    def record(row: Row) -> None:
        lasting.judged.count(row)
        lasting.bill.add(row)
        lasting.ledger.record(row)

    return Around(lasting.ways, lasting.prices, record, lasting.log, os.environ, lasting.models)


def _keep_shelf(settings: Settings, before: Serving | None) -> Shelf | None:
    """The shelf of before, when nothing that it was made with has changed."""
    if before is None:
        return None
    old = before.settings
    same = (old.deferral, old.prediction, old.caches) == (
        settings.deferral,
        settings.prediction,
        settings.caches,
    )
    return before.shelf if same else None


def _make_shelf(settings: Settings, lasting: Lasting) -> Shelf:
    return Shelf(
        settings.deferral,
        settings.prediction,
        _make_index(settings, lasting.semantic),
        settings.caches.catalogue_bytes,
        lasting.lessons if settings.prediction.learn else None,
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


def _make_turn_judge(
    settings: Settings, judges: Judges, background: Background
) -> TurnJudge | None:
    """Who judges what users say, when anybody wants to know.

    The operator's wording is read in any case. Raises ConfigError when it cannot be used.
    """
    own = settings.classification
    wordings = _read_wordings(own.questions) if own.questions else None
    if settings.memory.mode == "off" and not (own.enabled and own.tool_selection.enabled):
        return None
    return TurnJudge(judges.default, own, wordings or load_wordings(), background.spawn)


def _read_wordings(folder: str) -> Wordings:
    try:
        return load_wordings(Path(folder))
    except ConfigError as error:
        raise ConfigError(f"classification.questions: {error.message}") from None


def _make_adviser(
    settings: Settings, judges: Judges, turn_judge: TurnJudge | None, store: Store
) -> Adviser | None:
    """Who asks the judge about tools, when that is wanted."""
    own = settings.classification
    if turn_judge is None or not own.enabled or not own.tool_selection.enabled:
        return None
    return Adviser(judges.default, turn_judge, own, store)


def _make_memory(settings: Settings, near: Near) -> Remembered | None:
    """Memory, when it is on: only then is its store's library loaded."""
    if settings.memory.mode == "off":
        return None
    from proxy.memory.build import build_memory  # noqa: PLC0415 - SQLAlchemy: 0.3 s, 25 MB

    return build_memory(settings, near)
