"""What happened in a turn comes in; ledger rows, header values and counts go out."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from proxy.judge.bill import NOTHING, Bill, Use
from proxy.ledger.store import Ledger
from proxy.ledger.usage import NO_TOKENS, Row, Tokens, TurnRow, read_usage
from proxy.memory.session import Session as MemorySession
from proxy.observe.metrics import Metrics, upstream_kind
from proxy.plan.exchange import ChatRequest
from proxy.plan.plan import Recount, RequestPlan
from proxy.triage.session import Session
from proxy.upstream.rounds import Report, Spoken
from proxy.wire import Headers, JSONObject

REQUEST_ID = b"x-request-id"


@dataclass(slots=True)
class Account:
    """The books of one turn: a row per upstream call at once, the turn's own line at its end.

    Rows are written also when the client has gone, because an upstream bills for that too.
    """

    ledger: Ledger
    metrics: Metrics
    request: ChatRequest
    provider: str
    model: str
    plan: RequestPlan = field(default_factory=lambda: RequestPlan(None))
    started_at: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.perf_counter)
    rounds: int = 0
    closed: bool = False
    request_id: str = ""
    user: str | None = None
    triage: Session | None = None
    untriaged: str | None = None
    memory: MemorySession | None = None
    bill: Bill | None = None
    judged: Use = NOTHING
    tokens: Tokens = NO_TOKENS
    found: tuple[str, ...] = ()
    recount: Recount | None = None

    def __post_init__(self) -> None:
        self.request_id = self.request.request_id

    def stamp(self) -> float:
        """The milliseconds that Usher itself took before its first upstream call."""
        seconds = time.perf_counter() - self.clock
        self.metrics.overhead.observe(seconds)
        return seconds * 1000

    def adopt(self, headers: Headers) -> None:
        """Takes over the upstream's request id: it is the one that the client gets to see."""
        if self.rounds:
            return
        for name, value in headers:
            if len(name) == len(REQUEST_ID) and name.lower() == REQUEST_ID:
                self.request_id = value.decode("latin-1") or self.request_id
                return

    def enter_single(
        self, outcome: str, usage: JSONObject | None = None, model: str | None = None
    ) -> None:
        """Writes the row of a turn that is one upstream call, begun with the account itself."""
        latency = (time.perf_counter() - self.clock) * 1000
        tools = self.plan.tools or None
        self.enter(Report("main", 1, self.started_at, latency, usage, model, tools, outcome))

    def enter(self, report: Report) -> None:
        """Writes the row of one upstream call.

        Only the first says what was deferred: without deferral the others would not be there.
        """
        self.rounds += 1
        first = self.rounds == 1
        if report.finding is not None:
            self.metrics.rounds.add(report.finding)
        elif report.round > 1 and report.outcome != "ok":
            self.metrics.rounds.add("failed")
        if report.outcome != "ok" and (kind := upstream_kind(report.outcome)) is not None:
            self.metrics.upstream_errors.add(kind)
        self._settle_counts()
        tokens = self.tokens = read_usage(report.usage)
        caller, plan = self.request.caller, self.plan.booked()
        self.ledger.record(
            Row(
                request_id=self.request_id,
                tenant=caller.tenant,
                key=caller.key,
                user=self.user,
                context=report.context,
                round=report.round,
                provider=self.provider,
                model=self.model,
                answered_model=report.model,
                prompt_tokens=tokens.prompt,
                cached_tokens=tokens.cached,
                completion_tokens=tokens.completion,
                reasoning_tokens=tokens.reasoning,
                cost_nano_usd=tokens.cost_nano_usd,
                cost_source=None,
                started_at=report.started_at,
                latency_ms=report.latency_ms,
                tools_sent=report.tools_sent,
                tools_deferred=plan.deferred if first else None,
                tokens_avoided=plan.saved if first else None,
                outcome=report.outcome,
                cache_write_tokens=tokens.cache_write,
                service_tier=report.tier,
                detail={"found": list(report.found)} if report.found else None,
            )
        )

    def triage_header(self) -> bytes | None:
        """The value of `x-usher-triage`; None where triage is off."""
        if self.untriaged is not None:
            return f"pass;reason={self.untriaged}".encode()
        if self.triage is None or self.triage.scene.mode == "off":
            return None
        return self.triage.header().encode()

    def sum_judgments(self) -> Use:
        """What the turn's judgments have used so far."""
        if self.bill is not None:
            used = self.bill.take(self.request.caller.tenant, self.request.request_id)
            self.judged = self.judged.plus(used)
        return self.judged

    def explain(self) -> JSONObject:
        """For a client that asked for it: the plan, and what the reply's headers say."""
        return {
            **self.plan.describe(),
            "classification": self.sum_judgments()._asdict(),
            "memory_gate": None if self.memory is None else self.memory.describe(),
            "triage": None if self.triage is None else self.triage.describe(),
        }

    def discover(self, names: Sequence[str]) -> None:
        """Notes what the searches of this turn have found, on top of those of earlier turns."""
        self.found = tuple(names)
        self.plan = replace(self.plan, discovered=(*self.plan.discovered, *self.found))

    def close(self, outcome: str, spoken: Spoken | None = None) -> None:
        """Writes the turn's line, once."""
        if self.closed:
            return
        self.closed = True
        self._settle_counts()
        caller, plan = self.request.caller, self.plan.booked()
        hits = unused = missed = 0
        if plan.bypass is None:
            called = {call.name for call in spoken.calls} if spoken else set()
            predicted = set(plan.guessed)
            hits, unused = len(predicted & called), len(predicted - called)
            missed = self._count_missed(called)
            self._count(hits, unused, missed)
        self.ledger.record_turn(
            TurnRow(
                request_id=self.request_id,
                tenant=caller.tenant,
                key=caller.key,
                user=self.user,
                model=self.model,
                started_at=self.started_at,
                duration_ms=(time.perf_counter() - self.clock) * 1000,
                outcome=outcome,
                kept=plan.kept,
                deferred=plan.deferred,
                predicted=len(plan.predicted),
                discovered=len(plan.discovered),
                hits=hits,
                unused=unused,
                missed=missed,
                tokens_avoided=plan.saved,
                detail=self._detail(),
            )
        )

        if self.triage is not None and outcome == "ok":
            self.triage.end(self.tokens, self.request_id)

    def _count_missed(self, called: set[str]) -> int:
        """Tools that were called although nothing had loaded them when the turn began."""
        plan = self.plan
        strange = called.intersection(plan.foreseeable)
        if not strange:
            return 0
        loaded = {*plan.predicted, *plan.discovered, *plan.called}
        return len(strange - loaded.difference(self.found))

    def _settle_counts(self) -> None:
        """Fills in the tokens of a catalogue that were still being counted when the turn began.

        Not after the first row: the turn's line says the same.
        """
        if self.recount is not None and self.plan.saved is None:
            saved, sent = self.recount()
            self.plan = replace(self.plan, saved=saved, sent=sent)
            self.recount = None

    def _detail(self) -> JSONObject | None:
        """What triage, memory and the plan did, and our own id, if judgments go by another one."""
        detail: JSONObject = {}
        if self.triage is not None and self.triage.scene.mode != "off":
            detail["triage"] = self.triage.describe()
        if self.memory is not None:
            detail["memory"] = self.memory.describe()
        if self.plan.bypass is None or self.plan.observed:
            detail["plan"] = self.plan.describe()
        if self.request_id != self.request.request_id:
            detail["own_id"] = self.request.request_id
        return detail or None

    def _count(self, hits: int, unused: int, missed: int) -> None:
        metrics, plan = self.metrics, self.plan
        metrics.tools.add("kept", plan.kept)
        metrics.tools.add("deferred", plan.deferred)
        metrics.tools.add("predicted", len(plan.guessed))
        metrics.tools.add("discovered", len(self.found))
        metrics.predictions.add("hit", hits)
        metrics.predictions.add("unused", unused)
        metrics.predictions.add("miss", missed)
        if plan.saved:
            metrics.tokens_saved.inc(plan.saved)
