"""What happened goes in, Prometheus text comes out; every label has a short list of values."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Generic, Literal, TypeAlias, TypeVar, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from proxy.observe.board import Board
from proxy.observe.levels import Levels
from proxy.observe.spread import Spread

Endpoint: TypeAlias = Literal["chat", "passthrough", "other"]
ToolState: TypeAlias = Literal["kept", "deferred", "predicted", "discovered"]
RoundOutcome: TypeAlias = Literal["found", "empty", "duplicate", "limit", "repaired", "failed"]
PredictionOutcome: TypeAlias = Literal["hit", "unused", "miss"]
ReloadOutcome: TypeAlias = Literal["ok", "failed"]
StateUse: TypeAlias = Literal["limits", "store"]

Label = TypeVar("Label", bound=str)

UPSTREAM_KINDS = (
    "upstream_unreachable", "upstream_timeout", "upstream_error", "stream_truncated",
    "no_completion", "no_answer", "http_4xx", "http_429", "http_5xx",
)  # fmt: skip

PUBLISH_SECONDS = 1.0
_OVERHEAD = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_FIRST_CHUNK = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)
_STALL = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Tally(Generic[Label]):
    """A counter with one label; its children are looked up in a dict, not by prometheus' lock.

    An unknown value counts as `other`, so no caller can make the label grow.
    """

    def __init__(self, counter: Counter, values: Iterable[str]) -> None:
        self._children = {value: counter.labels(value) for value in (*values, "other")}

    def add(self, value: Label, amount: float = 1) -> None:
        if amount:
            child = self._children.get(value) or self._children["other"]
            child.inc(amount)


class Metrics:
    """The process's instruments; one object, handed to whoever has something to count."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry(auto_describe=True)
        self._board: Board | None = None
        self.requests = Requests(self.registry)
        self.overhead = self._histogram(
            "usher_overhead_seconds", "Time of a turn that Usher itself took.", _OVERHEAD
        )
        self.first_chunk = self._histogram(
            "usher_first_chunk_seconds", "Time until the first byte of an answer.", _FIRST_CHUNK
        )
        self.tools: Tally[ToolState] = self._tally(
            "usher_tools_total", "Tools of chat requests.", "state", get_args(ToolState)
        )
        self.tokens_saved = Counter(
            "usher_tool_tokens_saved_total",
            "Schema tokens kept out of prompts.",
            registry=self.registry,
        )
        self.rounds: Tally[RoundOutcome] = self._tally(
            "usher_tool_search_rounds_total", "Hidden rounds.", "outcome", get_args(RoundOutcome)
        )
        self.predictions: Tally[PredictionOutcome] = self._tally(
            "usher_predictions_total",
            "Predicted tools; a miss was called without having been predicted.",
            "outcome",
            get_args(PredictionOutcome),
        )
        self.in_flight = Gauge(
            "usher_in_flight_requests", "Requests being answered.", registry=self.registry
        )
        self.upstream_errors: Tally[str] = self._tally(
            "usher_upstream_errors_total",
            "Upstream calls without a usable answer.",
            "kind",
            UPSTREAM_KINDS,
        )
        self.stalls = self._histogram(
            "usher_event_loop_stall_seconds",
            "Times that the event loop was blocked for 10 ms or more.",
            _STALL,
        )
        self.breakers = Levels(
            "usher_judge_breaker_open",
            "1 while a judge is left alone, until it has answered again.",
            "backend",
            self.registry,
        )
        self.cache_bytes = Levels(
            "usher_cache_bytes", "Bytes of what is kept to save work.", "cache", self.registry
        )
        self.background = Gauge(
            "usher_background_tasks", "Work beside answers under way.", registry=self.registry
        )
        self.upkeep = Upkeep(self.registry)
        ProcessCollector(registry=self.registry)

    def share(self, folder: Path) -> None:
        """Answer for all processes that share a folder."""
        self._board = Board(folder, self.registry)

    def render(self) -> tuple[bytes, str]:
        """The exposition and its content type."""
        registry = self.registry if self._board is None else self._board.gather()
        return generate_latest(registry), CONTENT_TYPE_LATEST

    async def watch_loop(self, interval: float = 0.1, threshold: float = 0.01) -> None:
        """Record how long the event loop was blocked; runs until it is cancelled.

        Where the metrics are shared, they are published once a second.
        """
        clock = asyncio.get_running_loop().time
        publish_at = clock()
        while True:
            due = clock() + interval
            await asyncio.sleep(interval)
            late = clock() - due
            if late >= threshold:
                self.stalls.observe(late)
            if self._board is not None and clock() >= publish_at:
                publish_at = clock() + PUBLISH_SECONDS
                await asyncio.to_thread(self._board.publish)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Spread:
        return Spread(name, text, buckets, self.registry)

    def _tally(self, name: str, text: str, label: str, values: Iterable[str]) -> Tally[Label]:
        return Tally(Counter(name, text, [label], registry=self.registry), values)


def upstream_kind(outcome: str) -> str | None:
    """The kind of error that a call's outcome in the ledger stands for; None when it is none.

    A client that left and a request of Usher's own that failed are no errors of an upstream.
    """
    if outcome.startswith("http_") and outcome != "http_429":
        outcome = f"{outcome[:6]}xx"
    return outcome if outcome in UPSTREAM_KINDS else None


class Upkeep:
    """What happens to the gateway itself: other settings and keys, a shared store that is away."""

    def __init__(self, registry: CollectorRegistry) -> None:
        outcomes: tuple[ReloadOutcome, ...] = get_args(ReloadOutcome)
        text = "Times that the configuration was read again."
        counter = Counter("usher_config_reloads_total", text, ["outcome"], registry=registry)
        self.config_reloads: Tally[ReloadOutcome] = Tally(counter, outcomes)
        text = "Times that the key file was read again."
        counter = Counter("usher_key_reloads_total", text, ["outcome"], registry=registry)
        self.key_reloads: Tally[ReloadOutcome] = Tally(counter, outcomes)
        text = "Questions to the shared store that got no answer in time."
        counter = Counter("usher_state_failures_total", text, ["use"], registry=registry)
        self.state_failures: Tally[StateUse] = Tally(counter, get_args(StateUse))
        text = "A number that is the same where the same configuration is in force."
        self.config_hash = Gauge("usher_config_hash", text, registry=registry)
        text = "1 while the configuration on disk is refused and an older one is in force."
        self.config_stale = Gauge("usher_config_stale", text, registry=registry)
        text = "1 while requests are refused because keys in the file cannot be enforced."
        self.keys_unenforced = Gauge("usher_keys_unenforced", text, registry=registry)


class Requests:
    """`usher_requests_total{endpoint,status}`: a few hundred series at most, made when used."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counter = Counter(
            "usher_requests_total", "Answered requests.", ["endpoint", "status"], registry=registry
        )
        self._children: dict[tuple[str, int], Counter] = {}

    def add(self, endpoint: Endpoint, status: int) -> None:
        """Count an answer; status 499 means that the client left before it had one."""
        key = (endpoint, status if 100 <= status <= 599 else 0)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._counter.labels(endpoint, str(key[1]))
        child.inc()
