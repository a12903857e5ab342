"""A decision model behind either dialect: a job goes in, one or more requests later answers."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from proxy.judge import decisions, systemone
from proxy.judge.deadline import Deadline
from proxy.judge.exchange import Endpoint, Exchange
from proxy.judge.failures import Failed, Failure
from proxy.judge.fit import Fitted, clip_state, fit, restore
from proxy.judge.job import Job
from proxy.judge.presets import Profile, Resolved
from proxy.judge.questions import Choice, Question, Questions, Score, State
from proxy.judge.reading import Reading, merge
from proxy.judge.validate import Rules
from proxy.upstream.transport import Transport
from proxy.wire import JSON, JSONObject


class Sent(msgspec.Struct, frozen=True):
    """One question under the id that it has on the wire."""

    name: str
    original: Question
    fitted: Fitted


Batch = Mapping[str, Sent]


class DecisionBackend:
    """Asks one decision endpoint."""

    local = False

    def __init__(
        self, name: str, resolved: Resolved, exchange: Exchange, seconds: float | None = None
    ) -> None:
        self.name = name
        self.model = resolved.model
        self._profile = resolved.profile
        self._exchange = exchange
        self._seconds = seconds
        self._rules = Rules(half_unit=resolved.profile.half_unit)

    def answers(self, question: Question) -> bool:
        """Everything but a rating with more levels than the server takes."""
        limits = self._profile.limits
        return not isinstance(question, Score) or len(question.levels) <= limits.levels

    async def judge(self, job: Job) -> Reading:
        """Ask all questions, in as few requests as the server allows; raises Failed."""
        if self._seconds is not None:
            at = min(job.deadline.at, Deadline.after(self._seconds).at)
            job = replace(job, deadline=Deadline(at))
        batches = list(self._batches(job))
        if len(batches) == 1:
            return await self._ask(batches[0], job)
        results = await asyncio.gather(
            *(self._ask(batch, job) for batch in batches), return_exceptions=True
        )
        readings = [result for result in results if isinstance(result, Reading)]
        errors = [result for result in results if isinstance(result, BaseException)]
        if errors and not readings:
            raise errors[0]
        return merge(readings)

    def _batches(self, job: Job) -> Iterator[Batch]:
        limits = self._profile.limits
        sent = [
            Sent(name, question, _fit(name, question, limits.options, job))
            for name, question in job.questions.items()
        ]
        for start in range(0, len(sent), limits.questions):
            yield wire_ids(sent[start : start + limits.questions], self._profile)

    async def _ask(self, batch: Batch, job: Job) -> Reading:
        state = clip_state(job.state, self._profile.limits.state_chars)
        try:
            return await self._post(batch, state, job)
        except Failed as failed:
            if failed.failure is not Failure.TOO_LARGE:
                raise
        return await self._post(batch, clip_state(state, _half(state)), job)

    async def _post(self, batch: Batch, state: State, job: Job) -> Reading:
        questions = {wire: sent.fitted.sent for wire, sent in batch.items()}

        def read(body: JSON) -> Reading:
            return self._read(body, batch, questions)

        body = encode(self._profile, self.model, state, questions)
        return await self._exchange.post(body, read, job)

    def _read(self, body: JSON, batch: Batch, questions: Questions) -> Reading:
        decode = decisions.decode if self._profile.dialect == "openai" else systemone.decode
        reading = decode(unwrap(self._profile, body), questions, self._rules)
        return replace(
            reading,
            answers={
                batch[wire].name: restore(batch[wire].original, batch[wire].fitted, answer)
                for wire, answer in reading.answers.items()
            },
            problems={batch[wire].name: reason for wire, reason in reading.problems.items()},
        )


def _fit(name: str, question: Question, most: int, job: Job) -> Fitted:
    """Only a choice has options to cut, and an order to find a seed for."""
    if not isinstance(question, Choice):
        return Fitted(question)
    return fit(question, most, job.state, job.seed(name))


def encode(profile: Profile, model: str, state: State, questions: Questions) -> JSONObject:
    """The body that this endpoint wants, wrapped when it wants a wrapper."""
    if profile.dialect == "openai":
        body = decisions.encode(model, state, questions)
    else:
        body = systemone.encode(model, state, questions, both_sides=profile.both_sides)
    if profile.request_key is None:
        return body
    inner = {name: value for name, value in body.items() if name != "model"}
    return {"model": model, profile.request_key: inner}


def unwrap(profile: Profile, body: JSON) -> JSON:
    """The reply without its envelope; raises Failed when the envelope reports a failure."""
    if not isinstance(body, dict):
        raise Failed(Failure.MALFORMED)
    if body.get("success", not profile.must_succeed) is not True:
        raise Failed(Failure.SERVER_ERROR)
    return body if profile.response_key is None else body.get(profile.response_key)


def wire_ids(sent: Sequence[Sent], profile: Profile) -> Batch:
    """Ids as they are where the server takes them, else `q0`, `q1`, …: models never see ids."""
    if all(profile.limits.ids.fullmatch(one.name) for one in sent):
        return {one.name: one for one in sent}
    return {f"q{position}": one for position, one in enumerate(sent)}


def build_decision_backend(
    name: str, resolved: Resolved, transport: Transport, *, retries: int, seconds: float | None
) -> DecisionBackend:
    """A backend for a resolved preset."""
    endpoint = Endpoint(
        provider=name,
        model=resolved.model,
        url=resolved.url,
        headers=json_headers(resolved.api_key),
        retries=retries,
    )
    return DecisionBackend(name, resolved, Exchange(transport, endpoint), seconds)


def json_headers(api_key: str | None) -> list[tuple[bytes, bytes]]:
    """Headers of a JSON request whose reply must not be compressed."""
    headers = [
        (b"content-type", b"application/json"),
        (b"accept", b"application/json"),
        (b"accept-encoding", b"identity"),
    ]
    if api_key is not None:
        headers.append((b"authorization", b"Bearer " + api_key.encode()))
    return headers


def _half(state: State) -> int:
    return max(200, len(str(state)) // 2)
