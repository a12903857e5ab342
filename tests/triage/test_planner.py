"""Decisions: when they are made, what they cost, and that one of them holds."""

import pytest

from proxy.ledger.usage import NO_TOKENS
from proxy.wire import JSONObject
from tests.triage.talk import FakeDecider, FakeWriter, Studio, said, small, step, user

pytestmark = pytest.mark.anyio
DEAR = {"min_reclaim": 0, "expected_calls": 0}
CHEAP = {"min_reclaim": 0, "expected_calls": 10**6}
LONG = "Many words about something that was long ago. " * 20


def _talk(turns: int, text: str = LONG) -> list[JSONObject]:
    messages = [m for n in range(turns) for m in (user(f"{n} {text}"), said(f"Answer {n}."))]
    return [*messages, user("Now?")]


async def _decide(studio: Studio, messages: list[JSONObject], prompt: int = 2_000) -> JSONObject:
    _, session = await studio.send(messages)
    studio.hear(session, prompt)
    await studio.settle()
    entry = await studio.conduct.explain("default", "req_1")
    assert isinstance(entry, dict)
    return entry


async def test_a_plan_takes_effect_on_the_next_request() -> None:
    """Every decision is in the audit, with suggestion, probability, threshold and outcome."""
    studio = Studio(small(), FakeDecider({1: "drop", 2: "compress"}))
    entry = await _decide(studio, _talk(3))
    assert entry["reason"] == "pays"
    decision = entry["decisions"][0]
    assert decision.pop("tokens") == pytest.approx(248, abs=10)
    assert decision == {
        "unit": 1, "kind": "head", "suggestion": "drop", "probability": 0.9, "threshold": 0.7,
        "outcome": "drop", "reason": "",
    }  # fmt: skip
    sent, session = await studio.send([*_talk(3), said("Now."), user("And?")])
    assert len(sent) == 7
    assert '[2] "Noted."' in sent[0]["content"]
    assert session.header().startswith(f"plan={entry['plan']};kept=3;noted=1;dropped=1;saved=")


@pytest.mark.parametrize(("studio", "reason"), [
    (Studio(small(), None), "no judge"),
    (Studio(small(min_turns=9, protect={"turns": 1, "steps": 9})), "too short"),
    (Studio(small(), FakeDecider({}), FakeWriter()), "too little"),
    (Studio(small(cost={"min_reclaim": 0.9})), "nothing large enough"),
    (Studio(small(cost=DEAR), FakeDecider({1: "drop"})), "declined by cost"),
])  # fmt: skip
async def test_the_context_stays_and_the_reason_is_recorded(studio: Studio, reason: str) -> None:
    """Nothing that is missing or does not pay changes a byte."""
    messages = _talk(3)
    prompt = 9_000 if reason == "nothing large enough" else 2_000
    assert (await _decide(studio, messages, prompt))["reason"] == reason
    longer = [*messages, said("Now."), user("And?")]
    assert (await studio.send(longer))[0] == longer


async def test_without_usage_nothing_is_decided() -> None:
    """An estimate triggers nothing."""
    studio = Studio(small())
    _, session = await studio.send(_talk(3))
    session.end(NO_TOKENS)
    await studio.settle()
    entry = await studio.conduct.explain("default", "req_1")
    assert entry["reason"] == "no usage reported"


async def test_under_the_budget_nobody_is_asked() -> None:
    """The provider's own number decides."""
    decider = FakeDecider()
    studio = Studio(small(), decider)
    _, session = await studio.send(_talk(3))
    studio.hear(session, 100)
    await studio.settle()
    assert not decider.asked


@pytest.mark.parametrize(("note", "reason"), [
    (None, "no note"), ("word " * 200, "note too long"),
])  # fmt: skip
async def test_a_part_stays_without_a_good_note(note: str | None, reason: str) -> None:
    """A missing note, or one that saves too little."""
    studio = Studio(small(), FakeDecider({1: "compress", 2: "drop"}), FakeWriter(note))
    entry = await _decide(studio, _talk(3))
    outcomes = {d["unit"]: (d["outcome"], d["reason"]) for d in entry["decisions"]}
    assert outcomes[1] == ("keep", reason)
    assert outcomes[2][0] == "drop"


async def test_without_a_writer_nothing_is_compressed() -> None:
    """Deciding and writing are replaced apart."""
    studio = Studio(small(), FakeDecider({1: "compress", 2: "drop"}), None)
    entry = await _decide(studio, _talk(3))
    assert entry["decisions"][0]["reason"] == "no writer"


async def test_what_does_not_pay_waits_for_a_cold_cache() -> None:
    """Then it is free, and no judge is asked again."""
    decider = FakeDecider({1: "drop", 2: "drop"})
    studio = Studio(small(cost=DEAR), decider)
    await _decide(studio, _talk(3))
    longer = [*_talk(3), said("Now."), user("And?")]
    assert (await studio.send(longer))[0] == longer
    studio.now += 301
    later = [*longer, said("x"), user("Still?")]
    sent, session = await studio.send(later)
    assert len(sent) == len(later) - 4 + 2
    assert session.plan is not None
    assert session.plan.reason == "cold"
    assert len(decider.asked) == 1


async def test_two_workers_that_race_commit_one_plan() -> None:
    """Whatever each of them decided."""
    one = Studio(small(), FakeDecider({1: "drop"}))
    two = Studio(small(), FakeDecider({2: "drop"}), store=one.store)
    for studio in (one, two):
        _, session = await studio.send(_talk(3))
        studio.hear(session, 2_000)
    first, second = one.later.pop(), two.later.pop()
    await first
    await second
    longer = [*_talk(3), said("Now."), user("And?")]
    assert (await one.send(longer))[0] == (await two.send(longer))[0]


async def test_a_head_is_decided_once() -> None:
    """A repeated request asks nobody."""
    decider = FakeDecider({1: "drop"})
    studio = Studio(small(), decider)
    await _decide(studio, _talk(3))
    entry = await _decide(studio, _talk(3))
    assert entry["reason"] == "decided before"
    assert len(decider.asked) == 1


async def test_a_later_plan_only_adds() -> None:
    """What was dropped stays dropped, what stayed is not asked about again at once."""
    decider = FakeDecider({1: "drop", 4: "drop"})
    studio = Studio(small(), decider)
    await _decide(studio, _talk(3))
    longer = [*_talk(3), said("x"), user(LONG), said("y"), user("End?")]
    await _decide(studio, longer)
    assert sorted(decider.asked[1]) == [4, 5]
    sent, _ = await studio.send([*longer, said("x"), user("y")])
    assert [m["content"][0] for m in sent if m["role"] == "user"] == ["E", "1", "2", "M", "E", "y"]


async def test_old_notes_become_labels() -> None:
    """Those on steps, when a plan is made anyway and the tool can bring them back."""
    studio = Studio(
        small(note_turns=2, cost=CHEAP),
        FakeDecider({2: "compress", 6: "drop"}),
        FakeWriter("Found 7."),
    )
    history = [user("Do"), *step(1, LONG), said("Done."), *_talk(1), said("x"), user("1 " + LONG)]
    history += [*step(2), said("y"), user("Now?")]
    await _decide(studio, history)
    history += [said("z"), user("More?")]
    assert '[2] "Found 7."' in str((await studio.send(history))[0])
    history += [said("x"), user("2 " + LONG), said("y"), user("End?")]
    entry = await _decide(studio, history)
    assert entry["reason"] == "pays"
    sent = str((await studio.send([*history, said("x"), user("?")]))[0])
    assert "Found 7." not in sent
    assert "[2] look(1)" in sent


class _Gate:
    """Memory's gate, which takes every message for a request or none."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer

    async def wanted(self) -> bool:
        return self.answer


@pytest.mark.parametrize("asked", [True, False])
async def test_what_the_memory_gate_let_through_stays(asked: bool) -> None:
    """Its verdict on a message is remembered for as long as the conversation goes on."""
    studio = Studio(small(), FakeDecider({1: "drop", 2: "drop"}))
    messages = _talk(3)
    for stop in (1, 3):
        _, session = await studio.send(messages[:stop])
        session.gate = _Gate(asked and stop == 1)
        studio.hear(session, 10)
        await studio.settle()
    entry = await _decide(studio, messages)
    assert entry["spared"] == ({"1": "memory request"} if asked else {})
    sent, _ = await studio.send([*messages, said("Now."), user("And?")])
    assert (messages[0] in sent) is asked


@pytest.mark.parametrize(("cached", "early"), [(0, True), (500, False), (None, False)])
async def test_a_provider_without_a_cache_is_relieved_earlier(
    cached: int | None, early: bool
) -> None:
    """From half the budget, since nothing is read anew by it; two answers have to show it."""
    studio = Studio(small(budget_tokens=3_500, cost=DEAR), FakeDecider({1: "drop"}))
    messages = _talk(3)
    for stop in (3, 5, 7):
        _, session = await studio.send(messages[:stop])
        studio.hear(session, 3_000, cached)
        await studio.settle()
    sent, _ = await studio.send([*messages, said("Now."), user("And?")])
    assert (messages[0] not in sent) is early


async def test_a_writer_that_does_not_stop_has_not_written_a_note() -> None:
    """However long the part was."""
    studio = Studio(small(), FakeDecider({1: "compress"}), FakeWriter("word " * 2_000))
    entry = await _decide(studio, _talk(3, LONG * 40))
    assert entry["decisions"][0]["reason"] == "note too long"
