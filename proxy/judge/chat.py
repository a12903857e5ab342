"""A judge made of an ordinary chat model; what it can do is found out once and remembered."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from proxy.judge.emulate import Asked, lay_out
from proxy.judge.exchange import Exchange
from proxy.judge.failures import Failed, Failure
from proxy.judge.fit import Fitted, clip_state, fit, restore
from proxy.judge.job import Job
from proxy.judge.letters import MOST_LETTERS, letters_request, read_letters
from proxy.judge.numbers import number_keys, numbers_request, read_numbers, read_object
from proxy.judge.questions import Answer, Noul, Question, Questions, canonical, fingerprint
from proxy.judge.reading import Reading, merge, read_each, text_or_none
from proxy.judge.validate import BadAnswer, Rules
from proxy.ledger.usage import read_usage
from proxy.wire import JSON, JSONObject

Method = Literal["logprobs", "structured", "tool"]

STATE_CHARS = 24_000
PROBE = Noul("Is the document about the weather?")
PROBE_STATE = "It rains."


@dataclass(frozen=True, slots=True)
class Ability:
    """A way to ask; `plain` leaves out temperature and token limits, which some models refuse."""

    method: Method
    plain: bool = False


LADDER = (
    Ability("logprobs"),
    Ability("structured"),
    Ability("structured", plain=True),
    Ability("tool"),
    Ability("tool", plain=True),
)
"""Best first."""
DENIALS = frozenset({Failure.BAD_REQUEST, Failure.MALFORMED})
"""How a server says that it cannot do something; any other failure says nothing about that."""
MOST_LETTER_CALLS = 8
"""More questions than this go into one request, whatever the model can do."""


@dataclass(frozen=True, slots=True)
class Style:
    """How an operator wants a model asked."""

    method: Method | None = None
    parameters: Mapping[str, JSON] | None = None
    trust_self_reported: bool = False


class ChatBackend:
    """Asks a chat model."""

    local = False

    def __init__(self, exchange: Exchange, style: Style) -> None:
        self.name = exchange.endpoint.provider
        self.model = exchange.endpoint.model
        self._exchange = exchange
        self._style = style
        self._ability = Ability(style.method) if style.method is not None else None
        self._finding_out = asyncio.Lock()
        self._written = Rules(
            calibration="verbalized", slack=0.05, confident=style.trust_self_reported
        )

    def answers(self, question: Question) -> bool:  # noqa: ARG002 - the Protocol's
        """Anything."""
        return True

    async def judge(self, job: Job) -> Reading:
        """Ask by the best way that the model knows; raises Failed."""
        ability = self._ability or await self._find_out(job)
        job = replace(job, state=clip_state(job.state, STATE_CHARS))
        if ability.method != "logprobs" or len(job.questions) > MOST_LETTER_CALLS:
            return await self._ask_numbers(job, ability)
        reading = await self._ask_letters(job)
        if not reading.problems:
            return reading
        rest = {name: q for name, q in job.questions.items() if name in reading.problems}
        try:
            written = await self._ask_numbers(replace(job, questions=rest), Ability("structured"))
        except Failed:
            return reading
        return merge([reading, written])

    async def _ask_letters(self, job: Job) -> Reading:
        """One request per question, all at once; what failed is a problem of that question."""
        results = await asyncio.gather(
            *(self._ask_letter(job, name, q) for name, q in job.questions.items()),
            return_exceptions=True,
        )
        readings = [result for result in results if isinstance(result, Reading)]
        errors = [result for result in results if isinstance(result, BaseException)]
        if errors and not readings:
            raise errors[0]
        reading = merge(readings)
        missing = dict.fromkeys(job.questions, "the request failed")
        problems = {**missing, **reading.problems}
        return replace(
            reading, problems={n: why for n, why in problems.items() if n not in reading.answers}
        )

    async def _ask_letter(self, job: Job, name: str, question: Question) -> Reading:
        fitted = fit(question, MOST_LETTERS, job.state, job.seed(name))
        one = lay_out(name, fitted.sent, job.seed(name))

        def read(body: JSON) -> Reading:
            def answer(_name: str, original: Question) -> Answer:
                return restore(original, fitted, read_letters(body, one))

            return _reading(body, {name: question}, answer)

        body = self._body(letters_request(job.state, one), Ability("logprobs"))
        return await self._exchange.post(body, read, job)

    async def _ask_numbers(self, job: Job, ability: Ability) -> Reading:
        fitted, asked = self._lay_out_all(job)
        keys = number_keys(asked)
        by_name = {one.name: one for one in asked}

        def read(body: JSON) -> Reading:
            numbers = _object(body)

            def answer(name: str, original: Question) -> Answer:
                found = read_numbers(numbers, by_name[name], keys[name], self._written)
                return restore(original, fitted[name], found)

            return _reading(body, job.questions, answer)

        request = numbers_request(job.state, asked, as_tool=ability.method == "tool")
        return await self._exchange.post(self._body(request, ability), read, job)

    def _lay_out_all(self, job: Job) -> tuple[Mapping[str, Fitted], Sequence[Asked]]:
        fitted = {
            name: fit(question, MOST_LETTERS, job.state, job.seed(name))
            for name, question in job.questions.items()
        }
        return fitted, [lay_out(name, one.sent, job.seed(name)) for name, one in fitted.items()]

    def _body(self, request: JSONObject, ability: Ability) -> JSONObject:
        body = {"model": self.model, "stream": False, **request}
        if ability.plain:
            body.pop("temperature", None)
        body |= self._style.parameters or {}
        return {name: value for name, value in body.items() if value is not None}

    async def _find_out(self, job: Job) -> Ability:
        """Climb down the ladder with a question of no importance."""
        try:
            async with asyncio.timeout(job.deadline.remaining()):
                await self._finding_out.acquire()
        except TimeoutError:
            raise Failed(Failure.BREAKER_OPEN) from None
        try:
            if self._ability is None:
                self._ability = await self._climb(probe_job(job))
            return self._ability
        finally:
            self._finding_out.release()

    async def _climb(self, job: Job) -> Ability:
        for ability in LADDER:
            try:
                reading = await self._try(job, ability)
            except Failed as failed:
                if failed.failure not in DENIALS or failed.status == 404:
                    raise
                continue
            if reading.answers:
                return ability
        raise Failed(Failure.UNSUPPORTED)

    async def _try(self, job: Job, ability: Ability) -> Reading:
        if ability.method == "logprobs":
            return await self._ask_letter(job, "probe", PROBE)
        return await self._ask_numbers(job, ability)


def probe_job(job: Job) -> Job:
    """A job that finds out what a model can do, on the bill and the deadline of the real one."""
    return replace(
        job,
        state=PROBE_STATE,
        questions={"probe": PROBE},
        purpose=replace(job.purpose, name="probe"),
        state_hash=fingerprint(PROBE_STATE),
        hashes={"probe": fingerprint(canonical(PROBE))},
    )


def _reading(body: JSON, questions: Questions, read: Callable[[str, Question], Answer]) -> Reading:
    good, problems = read_each(questions, read)
    usage = body.get("usage") if isinstance(body, dict) else None
    model = body.get("model") if isinstance(body, dict) else None
    return Reading(good, problems, text_or_none(model), read_usage(usage))


def _object(body: JSON) -> JSONObject | None:
    try:
        return read_object(body)
    except BadAnswer:
        raise Failed(Failure.MALFORMED) from None
