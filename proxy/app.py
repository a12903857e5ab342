"""Settings come in; a gateway whose every part was handed its collaborators goes out."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
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
from proxy.edge.auth import Door
from proxy.edge.decisions import decision_routes
from proxy.edge.exchange import Edge
from proxy.edge.explain import explain_routes
from proxy.edge.passthrough import Forward
from proxy.edge.routes import Extras, build_routes
from proxy.judge.build import Around, Judges
from proxy.judge.fused import TurnJudge
from proxy.judge.wording import load_wordings
from proxy.ledger.priced import make_ledger
from proxy.ledger.prices import Prices
from proxy.ledger.store import Ledger
from proxy.observe.log import configure
from proxy.observe.metrics import Metrics
from proxy.settings import Settings
from proxy.shelf import Shelf
from proxy.state.memory import MemoryStore, Store
from proxy.tools.lexical import build_lexical
from proxy.tools.semantic import Semantic, has_semantic
from proxy.turn import Crew, Turn
from proxy.upstream.aiohttp_transport import AiohttpTransport
from proxy.upstream.httpx_transport import HttpxTransport
from proxy.upstream.litellm_adapter import LitellmTransport
from proxy.upstream.standin import StandinTransport
from proxy.upstream.target import Targets
from proxy.upstream.transport import Transport


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway that is ready to be served."""

    app: Starlette
    gate: Gate
    turn: Turn
    ledger: Ledger
    metrics: Metrics


def build_gateway(
    settings: Settings, data: Path, transports: Mapping[str, Transport] | None = None
) -> Gateway:
    """The composition root; `data` is the folder of the ledger.

    `transports` replaces the ways to an upstream by kind of target, for demos and tests.
    Raises ConfigError for settings that cannot work.
    """
    ways = {**_make_transports(settings), **(transports or {})}
    prices = Prices(settings.prices)
    ledger = make_ledger(settings.ledger, data, prices)
    metrics = Metrics()
    log = configure(settings.log)
    background = Background(log)
    judges = Judges(settings, Around(ways, prices, ledger.record, log, os.environ))
    targets = Targets(settings)
    semantic = _make_semantic(settings, data, log)
    shelf = Shelf(
        settings.deferral,
        settings.prediction,
        semantic.build if semantic else build_lexical,
        settings.caches.catalogue_bytes,
    )
    store = MemoryStore(settings.state.max_bytes, settings.state.ttl_seconds)
    dispatch = Dispatch(settings.upstream, ways)
    adviser = _make_adviser(settings, judges, background, store)
    turn = Turn(Crew(Drafter(settings, shelf, store, adviser), dispatch, ledger, metrics))
    edge = Edge(settings.server, Door(), Gate(), metrics, log)
    forward = Forward(settings, ways, targets, ledger)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await ledger.start()
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(metrics.watch_loop())
            yield
            watch.cancel()
        await background.drain(settings.server.drain_seconds)
        if semantic is not None:
            await asyncio.to_thread(semantic.close)
        for transport in ways.values():
            with suppress(OSError):
                await transport.aclose()
        await ledger.aclose()

    serving = settings.classification.serve_timeout_ms / 1000
    routes = [
        *admin_routes(edge, ledger),
        *explain_routes(edge, turn.explain),
        *decision_routes(edge, judges, forward, serving),
    ]
    app = build_routes(edge, turn.chat, forward, Extras(routes, lifespan))
    return Gateway(app, edge.gate, turn, ledger, metrics)


def _make_semantic(settings: Settings, data: Path, log: FilteringBoundLogger) -> Semantic | None:
    """The ranker by meaning, when it is wanted and its extra is installed."""
    if settings.prediction.ranker == "lexical" or not has_semantic():
        return None
    return Semantic(data / "vectors", lambda reason: log.warning("semantic_off", reason=reason))


def _make_adviser(
    settings: Settings, judges: Judges, background: Background, store: Store
) -> Adviser:
    own = settings.classification
    folder = Path(own.questions) if own.questions else None
    turn_judge = TurnJudge(judges.default, own, load_wordings(folder), background.spawn)
    return Adviser(judges.default, turn_judge, own.tool_selection, store)


def _make_transports(settings: Settings) -> dict[str, Transport]:
    fast = settings.upstream.transport == "aiohttp"
    return {
        "openai": AiohttpTransport() if fast else HttpxTransport(),
        "litellm": LitellmTransport(),
        "standin": StandinTransport(),
    }
