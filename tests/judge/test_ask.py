"""A judgment never raises, never takes longer than its deadline, and is always on the books."""

import asyncio
import time
from typing import Any

import pytest

from proxy.errors import ConnectFailed, StreamTruncated
from proxy.judge.ask import Desk, Judge, Member
from proxy.judge.books import NoPrices
from proxy.judge.breaker import Breaker, Patience
from proxy.judge.cache import AnswerCache
from proxy.judge.calibrate import Locked
from proxy.judge.deadline import Deadline
from proxy.judge.embedded import EmbeddedBackend
from proxy.judge.failures import Failure
from proxy.judge.job import Job, Purpose
from proxy.judge.questions import (
    Choice,
    ChoiceAnswer,
    Noul,
    NoulAnswer,
    Question,
    Refused,
    canonical,
    fingerprint,
)
from proxy.judge.reading import Reading
from proxy.judge.verdict import Verdict
from proxy.observe.log import silent
from tests.fakes.transport import FakeTransport
from tests.judge.fakes import (
    JUDGED,
    SPAM,
    Books,
    Fixed,
    Silence,
    answering,
    make_judge,
    native,
    reply,
)

pytestmark = pytest.mark.anyio

PURPOSE = Purpose("test", request_id="r", tenant="t")
TWO: dict[str, Question] = {"spam": Noul("Spam?"), "tool": Choice("Which?", {"a": None, "b": None})}
TOOL = ChoiceAnswer("a", {"a": 0.9, "b": 0.1}, 0.8)
GATE: dict[str, Question] = {"gate": Noul("Remember?", embedded="gate")}


async def decide(
    judge: Judge, questions: Any = SPAM, seconds: float = 1.0, state: str = "hello"
) -> Verdict:
    return await judge.decide(state, questions, Deadline.after(seconds), PURPOSE)


async def test_a_judgment_and_its_row() -> None:
    """The answer, who gave it, what it used."""
    books = Books()
    judge = make_judge(native(FakeTransport(reply(JUDGED)), "typesafe"), books=books)
    verdict = await decide(judge)
    assert verdict.ok
    assert verdict.noul("spam") == 0.09
    assert verdict.models == {"spam": "jev-1.14.0"}
    assert (verdict.tokens.prompt, verdict.cost_nano_usd) == (1_140, 47_880)
    assert judge.remote
    row = books.rows[0]
    assert (row.provider, row.model, row.answered_model) == ("typesafe", "jev-latest", "jev-1.14.0")
    assert (row.prompt_tokens, row.completion_tokens, row.cost_nano_usd) == (1_140, 7, 47_880)
    assert (row.context, row.outcome, row.tenant) == ("classification", "ok", "t")


LIARS = [
    b'{"answers": {"spam": {"type": "noul", "noul": NaN}}}',
    {"answers": {"spam": {"type": "noul", "noul": None}}},
    {"answers": {"spam": {"type": "noul", "noul": 3}}},
    {"answers": {}},
    {"answers": {"spam": {"type": "choice", "choice": "wrong", "probabilities": {}}}},
    b"<html>503</html>",
]


@pytest.mark.item("prediction/judge-no-answers", "prediction/judge-nan")
@pytest.mark.parametrize("body", LIARS)
async def test_a_liar_is_found_out(body: Any) -> None:
    """NaN, null, 3, nothing, another type, a web page: no answer, and the ledger says malformed."""
    books = Books()
    verdict = await decide(make_judge(native(FakeTransport(reply(body))), books=books))
    assert verdict.failure is Failure.MALFORMED
    assert verdict.answers == {}
    assert books.outcomes == ["malformed"]


async def test_one_bad_answer_of_two_is_partial() -> None:
    """The good one is used; sums of three are not."""
    choice = {"type": "choice", "choice": "a", "probabilities": {"a": 1.0, "b": 1.0, "c": 1.0}}
    answers = {"spam": {"type": "noul", "noul": 0.5}, "tool": choice}
    books = Books()
    verdict = await decide(
        make_judge(native(FakeTransport(reply({"answers": answers}))), books=books), TWO
    )
    assert verdict.noul("spam") == 0.5
    assert verdict.failure is Failure.MALFORMED
    assert books.outcomes == ["partial"]


@pytest.mark.parametrize(
    ("first", "failure", "outcomes"),
    [
        (reply({}, 401), Failure.UNAUTHORIZED, ["unauthorized"]),
        (reply({}, 402), Failure.PAYMENT, ["payment"]),
        (reply({}, 429, [(b"retry-after", b"9")]), Failure.RATE_LIMITED, ["rate_limited"]),
        (reply({}, 422), Failure.BAD_REQUEST, ["bad_request"]),
        (StreamTruncated("cut"), Failure.NETWORK, ["network", "network"]),
        (ConnectFailed("no"), Failure.NETWORK, ["network", "network"]),
        (reply({}, 503), Failure.SERVER_ERROR, ["server_error", "server_error"]),
    ],
)
async def test_every_failure_is_on_the_books(
    first: Any, failure: Failure, outcomes: list[str]
) -> None:
    """One row per attempt, and a verdict that says why it is empty."""
    books = Books()
    verdict = await decide(make_judge(native(FakeTransport(first, first)), books=books))
    assert verdict.failure is failure
    assert books.outcomes == outcomes


async def test_a_rate_limit_says_when_to_come_back() -> None:
    """For whoever serves the verdict."""
    transport = FakeTransport(reply({}, 429, [(b"retry-after", b"9")]))
    verdict = await decide(make_judge(native(transport)))
    assert verdict.retry_after == 9.0


async def test_added_latency_never_exceeds_the_deadline() -> None:
    """A silent server costs its deadline and not more, whatever the chain."""
    judge = make_judge(native(Silence()), native(Silence()), EmbeddedBackend({}))
    begun = time.monotonic()
    verdict = await decide(judge, TWO, seconds=0.3)
    assert time.monotonic() - begun < 0.34
    assert verdict.noul("spam") is None
    choice = verdict.choice("tool")
    assert choice is not None
    assert choice.calibration == "embedded"


async def test_a_hundred_turns_against_a_dead_judge_wait_for_three_deadlines() -> None:
    """Then the breaker is open, and the ledger says so."""
    books, silence = Books(), Silence()
    judge = make_judge(native(silence), books=books)
    begun = time.monotonic()
    for turn in range(100):
        assert not (await decide(judge, seconds=0.1, state=f"turn {turn}")).ok
    assert time.monotonic() - begun < 0.4
    assert silence.sent == 3
    assert books.outcomes == ["timeout"] * 3 + ["breaker_open"] * 97
    assert {row.cost_nano_usd for row in books.rows[3:]} == {0}


async def test_a_wrong_key_is_asked_once() -> None:
    """Until the configuration is read again."""
    books, transport = Books(), FakeTransport(reply({}, 401))
    judge = make_judge(native(transport), books=books)
    await decide(judge)
    assert (await decide(judge)).failure is Failure.DISABLED
    assert len(transport.sent) == 1
    assert books.outcomes == ["unauthorized", "disabled"]


async def test_the_next_in_the_chain_answers_what_is_open() -> None:
    """Only that: what the first one said stays."""
    first, second = Fixed({"tool": TOOL}), Fixed({"spam": NoulAnswer(0.2)}, name="second")
    verdict = await decide(make_judge(first, second), TWO)
    assert verdict.ok
    assert verdict.answers == {"spam": NoulAnswer(0.2), "tool": TOOL}
    assert list(second.asked[0].questions) == ["spam"]


async def test_the_built_in_model_answers_when_the_remote_one_is_down() -> None:
    """The gate keeps working without its judge."""
    transport = FakeTransport(answer=lambda _: ConnectFailed("down"))
    judge = make_judge(native(transport), EmbeddedBackend({"gate": lambda _: 0.9}))
    verdict = await decide(judge, GATE)
    assert verdict.ok
    assert verdict.answers == {"gate": NoulAnswer(0.9, "embedded")}


async def test_a_refusal_is_an_answer() -> None:
    """It is not asked again somewhere else."""
    second = Fixed({"spam": NoulAnswer(0.2)})
    verdict = await decide(make_judge(Fixed({"spam": Refused()}), second))
    assert verdict.answers == {"spam": Refused()}
    assert second.asked == []


async def test_the_first_of_two_remote_judges_leaves_time_for_the_other() -> None:
    """Sixty percent of what is left."""
    second = Fixed({"spam": NoulAnswer(0.2)})
    judge = make_judge(native(Silence()), second)
    begun = time.monotonic()
    assert (await decide(judge, seconds=0.5)).ok
    assert 0.25 < time.monotonic() - begun < 0.4


async def test_nobody_is_asked_after_the_deadline() -> None:
    """And no breaker counts it."""
    books = Books()
    judge = make_judge(native(FakeTransport(reply(JUDGED))), books=books)
    assert (await decide(judge, seconds=0.0)).failure is Failure.TIMEOUT
    assert books.outcomes == ["timeout"]
    assert (await decide(judge)).ok


async def test_a_question_that_nobody_knows() -> None:
    """Is unsupported, which is no failure of anybody."""
    books = Books()
    verdict = await decide(make_judge(EmbeddedBackend({}), books=books))
    assert (verdict.failure, books.rows) == (Failure.UNSUPPORTED, [])
    assert not make_judge(EmbeddedBackend({})).remote


async def test_a_bug_is_not_the_turns_problem() -> None:
    """It is logged by name, counted, and never raised."""

    class Broken(Fixed):
        async def judge(self, job: Job) -> Reading:
            raise KeyError("the user's own words")

    books = Books()
    verdict = await decide(make_judge(Broken({}), books=books))
    assert verdict.failure is Failure.INTERNAL
    assert books.outcomes == ["internal"]
    assert "words" not in str(books.rows)


async def test_a_caller_that_leaves_is_no_failure() -> None:
    """Cancellation goes on; the row is written; the breaker learns nothing."""
    books, breaker = Books(), Breaker(Patience(failures=1))
    desk = Desk(NoPrices(), books.rows.append, AnswerCache(0, 0), make_judge()._desk.log)
    judge = Judge([Member(native(Silence()), breaker)], desk)
    task = asyncio.get_running_loop().create_task(decide(judge))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert books.outcomes == ["aborted"]
    assert breaker.refusal() is None


async def test_the_same_question_is_not_paid_twice() -> None:
    """Within its time, for the same tenant, state and wording."""
    books, transport = Books(), answering(lambda _: JUDGED)
    judge = make_judge(native(transport), books=books, cache=AnswerCache(60, 10))
    first = await decide(judge)
    assert (await decide(judge)).answers == first.answers
    await decide(judge, state="another")
    await judge.decide("hello", SPAM, Deadline.after(1), Purpose("test", tenant="other"))
    assert books.outcomes == ["ok", "cache_hit", "ok", "ok"]
    assert len(transport.sent) == 3
    assert (books.rows[1].cost_nano_usd, books.rows[1].prompt_tokens) == (0, 0)


async def test_incomplete_answers_are_not_kept() -> None:
    """They are asked again."""
    transport = answering(lambda _: JUDGED)
    judge = make_judge(native(transport), cache=AnswerCache(60, 10))
    await decide(judge, TWO)
    await decide(judge, TWO)
    assert len(transport.sent) == 2


async def test_drift_from_the_calibration_is_logged_once() -> None:
    """When another model answers than the threshold was measured with."""
    said: list[str] = []

    class Log:
        def warning(self, event: str, **fields: Any) -> None:
            said.append(f"{event}: {fields.get('detail')}")

    lock = {"spam": Locked(0.4, "hash", "jev-1.13.0")}
    desk = Desk(NoPrices(), lambda _: None, AnswerCache(0, 0), Log(), lock)  # type: ignore[arg-type]  # the part of a logger that is used
    backend = native(answering(lambda _: JUDGED))
    judge = Judge([Member(backend, Breaker(Patience()))], desk)
    await decide(judge)
    await decide(judge, state="again")
    assert len(said) == 2
    assert "jev-1.13.0" in said[0]


async def test_a_calibrated_threshold_comes_with_the_verdict() -> None:
    """While that model answers that wording."""
    lock = {"spam": Locked(0.4, fingerprint(canonical(SPAM["spam"])), "jev-1.14.0")}
    desk = Desk(NoPrices(), lambda _: None, AnswerCache(0, 0), silent(), lock)
    judge = Judge([Member(native(answering(lambda _: JUDGED)), Breaker(Patience()))], desk)
    assert (await decide(judge)).thresholds == {"spam": 0.4}


async def test_unknown_cost_is_not_zero() -> None:
    """One attempt without a price makes the whole cost unknown."""
    backend = native(answering(lambda _: JUDGED), model="laya")
    reply_model = await decide(make_judge(backend))
    assert reply_model.cost_nano_usd == 47_880
    body = {"answers": {"spam": {"type": "noul", "noul": 0.5}}, "usage": {"input_tokens": 5}}
    unpriced = native(answering(lambda _: body), model="laya")
    assert (await decide(make_judge(unpriced))).cost_nano_usd is None
