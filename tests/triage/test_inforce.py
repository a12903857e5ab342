"""Which plan is in force: at once where nothing forbids it, later where signed blocks do."""

import orjson
import pytest

from proxy.triage.session import Session
from proxy.triage_settings import Limits
from proxy.wire import JSON, JSONObject
from tests.triage.talk import FakeDecider, Studio, check_pairs, said, sign, small, step, user

pytestmark = pytest.mark.anyio
ASKS: JSONObject = {"thinking": {"type": "enabled", "budget_tokens": 2_000}}
TEXT = "Many words about what was found. " * 30


class Loop:
    """An agent's loop whose model signs every step, or only the first."""

    def __init__(self, studio: Studio, *, always: bool) -> None:
        self.studio = studio
        self.always = always
        self.messages: list[JSONObject] = [user("Do it all.")]
        self.count = 0

    async def go_on(self, *, settle: bool = True) -> tuple[list[JSONObject], Session]:
        """One request, its answer and the result of its call."""
        sent, session = await self.studio.send(self.messages, **ASKS)
        thinks = session.unthink() is None and (self.always or self.count == 0)
        blocks = [{"type": "thinking", "signature": sign(sent)}]
        more: dict[str, JSON] = {"thinking_blocks": blocks} if thinks else {}
        self.count += 1
        answer = step(self.count, TEXT, **more)
        await self.studio.answer(session, orjson.dumps(answer[0]))
        self.studio.hear(session)
        if settle:
            await self.studio.settle()
        self.messages += answer
        check_pairs(sent)
        return sent, session


def _signatures(sent: list[JSONObject]) -> list[bool]:
    """Of each signed message, whether its block was made from what is in front of it."""
    return [
        message["thinking_blocks"][0]["signature"] == sign(sent[:position])
        for position, message in enumerate(sent)
        if "thinking_blocks" in message
    ]


def _loop(*, always: bool, **settings: JSON) -> Loop:
    decider = FakeDecider(dict.fromkeys(range(2, 50), "drop"))
    return Loop(Studio(small(**settings), decider), always=always)


async def test_a_plan_enters_a_running_turn_behind_its_only_block() -> None:
    """A model that thinks once a turn signed nothing of the steps that go."""
    loop = _loop(always=False)
    for _ in range(9):
        await loop.go_on()
    sent, session = await loop.go_on()
    assert session.acts
    assert not session.unthinking
    assert _signatures(sent) == [True]
    assert len(str(sent)) < len(str(loop.messages)) / 2


async def test_a_plan_waits_for_the_end_of_a_turn_that_is_signed_throughout() -> None:
    """Then it is in force at once, without the blocks of the turn that is over."""
    loop = _loop(always=True)
    for number in range(6):
        sent, _ = await loop.go_on()
        assert sent == loop.messages[: len(sent)]
        assert _signatures(sent) == [True] * number
    loop.messages += [said("Done."), user("And now?")]
    sent, session = await loop.studio.send(loop.messages, **ASKS)
    assert session.acts
    assert session.unthink() is None
    assert all(_signatures(sent))


async def test_after_a_restart_a_running_turn_goes_on_without_thinking() -> None:
    """Nobody knows what its blocks were made from; the next turn thinks again."""
    loop = _loop(always=True)
    for _ in range(3):
        await loop.go_on()
    loop.studio.store.clear()
    loop.studio.conduct = loop.studio.restart()
    for _ in range(2):
        sent, session = await loop.go_on()
        assert not _signatures(sent)
        body = session.unthink()
        assert body is not None
        assert "thinking" not in orjson.loads(body)
        assert orjson.loads(body)["messages"] == loop.messages[: len(sent)]
        assert ";thinking=off" in session.header()
    loop.messages += [said("Done."), user("And now?")]
    _, session = await loop.studio.send(loop.messages, **ASKS)
    assert session.unthink() is None


async def test_a_restart_between_turns_costs_a_block_and_nothing_else() -> None:
    """Providers do not ask for the blocks of turns that are over."""
    studio = Studio(small())
    blocks = [{"type": "thinking", "signature": "made-before-the-restart"}]
    messages = [user("Hi"), said("Hello.", thinking_blocks=blocks), user("And?")]
    sent, session = await studio.send(messages, **ASKS)
    assert sent == [user("Hi"), said("Hello."), user("And?")]
    assert session.unthink() is None


async def test_a_full_window_ends_the_thinking_of_a_running_turn() -> None:
    """A turn that goes on without is better than one that is refused."""
    loop = Loop(Studio(small(window_tokens=3_000), FakeDecider({})), always=True)
    sent, session = await loop.go_on()
    while not session.acts and len(loop.messages) < 50:
        sent, session = await loop.go_on()
    assert session.plan is not None
    assert session.plan.reason == "emergency"
    assert session.unthink() is not None
    assert all(_signatures(sent))
    again, session = await loop.go_on()
    assert again[: len(sent)] == sent
    assert session.unthinking


async def test_a_cap_leaves_blocks_in_front_of_it_alone() -> None:
    """Also where triage itself is off: a cut result is the same on every request."""
    studio = Studio(small(mode="off"), limits=Limits(max_tool_result_chars=200))
    loop = Loop(studio, always=True)
    for number in range(3):
        sent, session = await loop.go_on()
        assert session.unthink() is None
        assert _signatures(sent) == [True] * number
        assert str(sent).count("left out") == number


async def test_another_models_blocks_are_left_out() -> None:
    """It does not understand them; one of the same family, wherever it runs, does."""
    loop = _loop(always=True)
    loop.studio.model = "claude-sonnet-4-5"
    await loop.go_on()
    for model, stays in (("anthropic/claude-opus-4-5", True), ("gpt-5", False)):
        loop.studio.model = model
        sent, session = await loop.studio.send(loop.messages, **ASKS)
        assert _signatures(sent) == [True] * stays
        assert session.unthinking is not stays
