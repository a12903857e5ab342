"""State and questions in, a verdict out, within a deadline and without ever raising.

A chain of backends shares the deadline: each is asked what the ones before it left open. Every
attempt becomes one ledger row, whatever happens.
"""

import asyncio
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace
from structlog.typing import FilteringBoundLogger

from proxy.judge.books import Prices, make_row
from proxy.judge.breaker import Breaker
from proxy.judge.cache import AnswerCache
from proxy.judge.calibrate import Lock, find_drift, find_thresholds
from proxy.judge.deadline import Deadline
from proxy.judge.failures import Failed, Failure
from proxy.judge.job import Attempt, Backend, Job, Purpose
from proxy.judge.questions import Answer, Questions, State, canonical, fingerprint
from proxy.judge.reading import Reading
from proxy.judge.verdict import Verdict
from proxy.ledger.usage import Row, Tokens

FIRST_SHARE = 0.6
"""Of what is left, when another remote judge waits its turn."""
LOCAL_RESERVE_SECONDS = 0.01
"""Kept back for a built-in judge after a remote one."""


@dataclass(frozen=True, slots=True)
class Member:
    """A backend of the chain and its own breaker."""

    backend: Backend
    breaker: Breaker


@dataclass(slots=True)
class Gathered:
    """What the chain has found so far."""

    answers: dict[str, Answer] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    failed: Failed | None = None


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything a judge works with: prices, where rows go, kept answers, the log, the lock."""

    prices: Prices
    record: Callable[[Row], None]
    cache: AnswerCache
    log: FilteringBoundLogger
    lock: Lock = field(default_factory=dict)


class Judge:
    """The one way to have something judged."""

    def __init__(self, chain: Sequence[Member], desk: Desk) -> None:
        self.chain = tuple(chain)
        self._desk = desk
        self._warned: set[str] = set()

    @property
    def remote(self) -> bool:
        """Whether any judge outside this process is configured."""
        return any(not member.backend.local for member in self.chain)

    async def decide(
        self, state: State, questions: Questions, deadline: Deadline, purpose: Purpose
    ) -> Verdict:
        """Ask the chain. Raises nothing but CancelledError, and then the rows are written."""
        begun = time.monotonic()
        found = Gathered()
        hashes = {name: fingerprint(canonical(q)) for name, q in questions.items()}

        def record(attempt: Attempt) -> None:
            row = make_row(attempt, purpose, self._desk.prices)
            found.rows.append(row)
            self._desk.record(row)

        whole = Job(state, questions, deadline, purpose, fingerprint(state), hashes, record)
        for position, member in enumerate(self.chain):
            job = self._open(whole, member, found)
            if job.questions:
                await self._ask(member, self._timed(job, position), found)
        verdict = _conclude(questions, found, begun)
        if self._desk.lock:
            self._warn_of_drift(verdict, hashes)
            found_thresholds = find_thresholds(self._desk.lock, verdict, hashes)
            verdict = replace(verdict, thresholds=found_thresholds)
        return verdict

    def _warn_of_drift(self, verdict: Verdict, hashes: Mapping[str, str]) -> None:
        """Say once that a threshold was measured with something else."""
        for drift in find_drift(self._desk.lock, verdict, hashes):
            if drift not in self._warned:
                self._warned.add(drift)
                self._desk.log.warning("calibration_drift", detail=drift)

    def _open(self, whole: Job, member: Member, found: Gathered) -> Job:
        """The part of a job that is still unanswered and that this backend can answer."""
        left = {
            name: question
            for name, question in whole.questions.items()
            if name not in found.answers and member.backend.answers(question)
        }
        return replace(whole, questions=left)

    def _timed(self, job: Job, position: int) -> Job:
        """The job with this backend's share of the time that is left."""
        later = self.chain[position + 1 :]
        if self.chain[position].backend.local or not later:
            return job
        if any(not member.backend.local for member in later):
            return replace(job, deadline=job.deadline.share(FIRST_SHARE))
        reserve = min(LOCAL_RESERVE_SECONDS, job.deadline.remaining() / 10)
        return replace(job, deadline=Deadline(job.deadline.at - reserve))

    async def _ask(self, member: Member, job: Job, found: Gathered) -> None:
        backend = member.backend
        key = _cache_key(backend, job)
        kept = self._desk.cache.get(key)
        if kept is not None:
            job.record(_unsent(backend, "cache_hit", kept))
            _take(found, kept, backend)
            return
        refusal = self._refusal(member, job)
        if refusal is not None:
            job.record(_unsent(backend, refusal))
            found.failed = Failed(refusal, retry_after=member.breaker.pause)
            return
        try:
            reading = await self._guarded(member, job)
        except Failed as failed:
            found.failed = failed
            return
        _take(found, reading, backend)
        if not reading.problems and not backend.local:
            self._desk.cache.put(key, reading)

    def _refusal(self, member: Member, job: Job) -> Failure | None:
        if not member.backend.local and not job.deadline.remaining():
            return Failure.TIMEOUT
        return member.breaker.refusal()

    async def _guarded(self, member: Member, job: Job) -> Reading:
        """Ask one backend and tell its breaker; whatever goes wrong in there becomes Failed."""
        try:
            reading = await member.backend.judge(job)
            if reading.answers:
                member.breaker.succeed()
                return reading
            failed = Failed(Failure.MALFORMED)
        except Failed as reason:
            failed = reason
        except asyncio.CancelledError:
            member.breaker.fail(Failed(Failure.ABORTED))
            raise
        except Exception as bug:  # noqa: BLE001 - the judge's guard: no answer ever fails for it
            self._note_bug(member.backend, job, bug)
            failed = Failed(Failure.INTERNAL)
        member.breaker.fail(failed)
        self._report(member.backend, job, failed)
        raise failed

    def _note_bug(self, backend: Backend, job: Job, bug: Exception) -> None:
        """Say where, but not what: an exception's text may hold the user's."""
        frames = list(traceback.walk_tb(bug.__traceback__))
        where = f"{frames[-1][0].f_code.co_qualname}:{frames[-1][1]}"
        kind = type(bug).__name__
        self._desk.log.error("judge_bug", backend=backend.name, kind=kind, where=where)
        job.record(_unsent(backend, Failure.INTERNAL))

    def _report(self, backend: Backend, job: Job, failed: Failed) -> None:
        self._desk.log.warning(
            "judgment_failed",
            backend=backend.name,
            purpose=job.purpose.name,
            reason=str(failed.failure),
            status=failed.status,
        )


def _cache_key(backend: Backend, job: Job) -> str:
    asked = {name: job.hashes[name] for name in job.questions}
    return fingerprint(job.purpose.tenant, backend.name, backend.model, job.state_hash, asked)


def _unsent(backend: Backend, outcome: str, kept: Reading | None = None) -> Attempt:
    """A line for a judgment that needed no request, or was not allowed one."""
    return Attempt(
        provider=backend.name,
        model=backend.model,
        outcome=outcome,
        started_at=time.time(),
        latency_ms=0.0,
        reading=kept,
        local=backend.local,
    )


def _take(found: Gathered, reading: Reading, backend: Backend) -> None:
    found.answers.update(reading.answers)
    found.models.update(dict.fromkeys(reading.answers, reading.model or backend.model))
    if reading.problems:
        found.failed = Failed(Failure.MALFORMED)


def _sum(counts: Sequence[int | None]) -> int | None:
    """What is known of them; None when nothing is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _conclude(questions: Questions, found: Gathered, begun: float) -> Verdict:
    answers = {name: found.answers[name] for name in questions if name in found.answers}
    failed = None
    if len(answers) < len(questions):
        failed = found.failed or Failed(Failure.UNSUPPORTED)
    costs = [row.cost_nano_usd for row in found.rows]
    known = [cost for cost in costs if cost is not None]
    return Verdict(
        answers=answers,
        failure=None if failed is None else failed.failure,
        models=found.models,
        tokens=Tokens(
            prompt=_sum([row.prompt_tokens for row in found.rows]),
            completion=_sum([row.completion_tokens for row in found.rows]),
        ),
        cost_nano_usd=sum(known) if len(known) == len(costs) else None,
        latency_ms=(time.monotonic() - begun) * 1000,
        retry_after=None if failed is None else failed.retry_after,
    )
