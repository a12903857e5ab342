"""Judges for tests: scripted servers without sockets, and everything a judge works with."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from proxy.judge.ask import Desk, Judge, Member
from proxy.judge.books import NoPrices, Prices
from proxy.judge.breaker import Breaker, Patience
from proxy.judge.cache import AnswerCache
from proxy.judge.deadline import Deadline
from proxy.judge.job import Attempt, Backend, Job, Purpose
from proxy.judge.native import DecisionBackend, build_decision_backend
from proxy.judge.presets import resolve
from proxy.judge.questions import Noul, Question, Questions, State, canonical, fingerprint
from proxy.judge.reading import Reading
from proxy.judge_settings import DecisionProvider
from proxy.ledger.usage import Row
from proxy.observe.log import silent
from proxy.upstream.transport import Prepared, Transport, UpstreamRequest
from proxy.wire import Headers
from tests.fakes.transport import FakeTransport

URL = "http://judge.test/v1/systemone"
SPAM = {"spam": Noul("Is it spam?")}
NO_SPAM = {"model": "jev-1.14.0", "answers": {"spam": {"type": "noul", "noul": 0.09}}}
JUDGED = {**NO_SPAM, "usage": {"input_tokens": 1140, "output_tokens": 7}}


def reply(body: Any, status: int = 200, headers: Headers | None = None) -> Prepared:
    """A whole HTTP response; bytes are sent as they are."""
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    return Prepared(status, headers or [], data)


def body_of(request: UpstreamRequest) -> Any:
    """What was sent."""
    assert isinstance(request.body, bytes)
    return orjson.loads(request.body)


def answering(answer: Callable[[Any], Any]) -> FakeTransport:
    """A server that computes its reply's JSON from the request's."""
    return FakeTransport(answer=lambda request: reply(answer(body_of(request))))


class Silence:
    """A transport whose server never answers."""

    def __init__(self) -> None:
        self.sent = 0

    async def send(self, request: UpstreamRequest) -> Prepared:
        self.sent += 1
        await asyncio.Event().wait()
        raise AssertionError("nobody wakes it")

    async def aclose(self) -> None: ...


def native(
    transport: Transport, name: str = "test", seconds: float | None = None, **own: Any
) -> DecisionBackend:
    """A decision backend; keyword arguments are keys of its provider section."""
    own = {"base_url": URL, "api_key": "k", **own}
    resolved = resolve(name, DecisionProvider.model_validate(own), {})
    assert resolved is not None
    return build_decision_backend(name, resolved, transport, retries=1, seconds=seconds)


class Books:
    """Keeps the rows."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    @property
    def outcomes(self) -> list[str]:
        return [row.outcome for row in self.rows]


def make_judge(
    *backends: Backend,
    books: Books | None = None,
    prices: Prices | None = None,
    cache: AnswerCache | None = None,
    patience: Patience | None = None,
) -> Judge:
    """A judge with this chain; without a cache unless one is given."""
    books = books or Books()
    desk = Desk(prices or NoPrices(), books.rows.append, cache or AnswerCache(0, 0), silent())
    patience = patience or Patience()
    return Judge([Member(backend, Breaker(patience)) for backend in backends], desk)


def make_job(
    state: State, questions: Questions, attempts: list[Attempt] | None = None, seconds: float = 2.0
) -> Job:
    """A job for a backend on its own."""
    kept: list[Attempt] = [] if attempts is None else attempts
    return Job(
        state=state,
        questions=questions,
        deadline=Deadline.after(seconds),
        purpose=Purpose("test"),
        state_hash=fingerprint(state),
        hashes={name: fingerprint(canonical(question)) for name, question in questions.items()},
        record=kept.append,
    )


class Fixed:
    """A backend with ready answers."""

    model = "fixed-1"

    def __init__(
        self,
        answers: Mapping[str, Any],
        *,
        name: str = "fixed",
        local: bool = False,
        knows: Sequence[type[Question]] | None = None,
    ) -> None:
        self.name = name
        self.local = local
        self.asked: list[Job] = []
        self._answers = answers
        self._knows = knows

    def answers(self, question: Question) -> bool:
        return self._knows is None or isinstance(question, tuple(self._knows))

    async def judge(self, job: Job) -> Reading:
        self.asked.append(job)
        found = {name: a for name, a in self._answers.items() if name in job.questions}
        missing = {name: "there is no answer" for name in job.questions if name not in found}
        reading = Reading(found, missing, self.model)
        job.record(Attempt(self.name, self.model, reading.outcome, 0.0, 1.0, reading))
        return reading
