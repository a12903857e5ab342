"""Random conversations: whatever clients do, no request is one that a provider would refuse."""

import asyncio
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import orjson
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from proxy.wire import JSON, JSONObject
from tests.triage.talk import (
    Studio,
    check_pairs,
    check_signatures,
    plain,
    said,
    sign,
    small,
    step,
    user,
)

OPS = (
    "ask", "ask", "ask", "tools", "tools", "parallel", "branch", "edit", "regenerate",
    "switch", "compact",
    "renumber", "trim", "drop_reasoning", "lose_store", "wait", "late", "settle", "settle",
)  # fmt: skip
WORDS = "the quick brown fox jumps over a lazy dog while it rains "


@dataclass(slots=True)
class Client:
    """A client whose provider signs every answer, and what went up before."""

    studio: Studio
    signs: str
    messages: list[JSONObject] = field(default_factory=list)
    asked: list[list[JSONObject]] = field(default_factory=list)
    sent: list[tuple[list[JSONObject], list[JSONObject], str, int]] = field(default_factory=list)
    acts: set[str] = field(default_factory=set)
    count: int = 0
    lost: int = 0

    async def request(self, calls: int = 0) -> None:
        """One request and its answer, checked as a provider would, and against the last one."""
        self.count += 1
        messages = [{"role": "system", "content": f"It is {self.count} o'clock."}, *self.messages]
        before = orjson.dumps(messages)
        thinking = {"type": "enabled"} if self.signs else None
        woven, session = await self.studio.send(messages, thinking=thinking)
        thinks = bool(self.signs) and session.unthink() is None
        assert orjson.dumps(messages) == before
        check_pairs(woven)
        if thinks:
            assert _blocks_of_turn(woven) == _blocks_of_turn(messages)
        check_signatures(woven[1:])
        assert woven[0] == messages[0]
        plan = session.plan.anchor if session.plan is not None and session.acts else ""
        self.compare(woven[1:], plan, set(session.acts))
        self.sent.append((deepcopy(self.messages), woven[1:], plan, self.lost))
        self.acts = set(session.acts)
        self.asked.append(deepcopy(self.messages))
        answer = self.answer(woven[1:], calls, thinks=thinks)
        await self.studio.answer(session, orjson.dumps(answer[0]))
        self.studio.hear(session)
        self.messages.extend(answer)

    def compare(self, woven: Sequence[JSONObject], plan: str, acts: set[str]) -> None:
        """No prefix moves without a new plan, and a plan only adds."""
        if not self.sent:
            return
        messages, earlier, used, lost = self.sent[-1]
        grown = [plain(m) for m in self.messages[: len(messages)]] == [plain(m) for m in messages]
        if grown and lost == self.lost:
            assert self.acts <= acts
        if grown and used == plan and lost == self.lost:
            assert [plain(m) for m in woven[: len(earlier)]] == [plain(m) for m in earlier]

    def answer(self, woven: Sequence[JSONObject], calls: int, *, thinks: bool) -> list[JSONObject]:
        """With a block where the model thinks: at every step, or only at a turn's first."""
        more: JSONObject = {}
        if thinks and (self.signs == "all" or woven[-1]["role"] == "user"):
            more["thinking_blocks"] = [{"type": "thinking", "signature": sign(woven)}]
        if calls:
            return step(self.count, WORDS * (self.count % 7), calls, **more)
        return [said(f"Answer {self.count}. " + WORDS * (self.count % 3), **more)]

    async def ask(self) -> None:
        self.messages.append(user(f"Question {self.count}? " + WORDS * (self.count % 4)))
        await self.request()

    async def use_tools(self, seed: int, calls: int) -> None:
        self.messages.append(user(f"Task {self.count}. " + WORDS))
        for number in range(1 + seed % 4):
            await self.request(calls)
            if seed % 3 == 0:
                await self.studio.settle()
            elif seed % 11 == number:
                await self.tidy("lose_store")
        await self.request()

    def cut_to(self, seed: int) -> int | None:
        """Back to some user message."""
        users = [p for p, message in enumerate(self.messages) if message["role"] == "user"]
        if not users:
            return None
        place = users[seed % len(users)]
        del self.messages[place + 1 :]
        return place

    async def act(self, op: str, seed: int) -> None:
        match op:
            case "ask":
                await self.ask()
            case "tools":
                await self.use_tools(seed, 1)
            case "parallel":
                await self.use_tools(seed, 2 + seed % 3)
            case "branch" if self.cut_to(seed) is not None:
                await self.request()
                await self.ask()
            case "edit":
                place = self.cut_to(seed)
                if place is not None:
                    self.messages[place]["content"] += f" Edited {self.count}."
                    await self.request()
            case "regenerate" if self.asked:
                self.messages = deepcopy(self.asked[-1])
                await self.request()
            case "switch" if self.asked:
                self.messages = deepcopy(self.asked[seed % len(self.asked)])
                await self.request()
            case "compact" if len(self.messages) > 4:
                self.messages = [user("In short: we talked."), said("Yes."), user("Go on.")]
                await self.request()
            case _:
                await self.tidy(op)

    async def tidy(self, op: str) -> None:
        """What clients do to histories that they keep, and what happens around them."""
        match op:
            case "renumber":
                self.renumber()
            case "trim":
                self.trim()
            case "drop_reasoning":
                for message in self.messages:
                    message.pop("thinking_blocks", None)
                self.lost += 1
            case "lose_store":
                self.studio.store.clear()
                self.studio.conduct = self.studio.restart()
                self.lost += 1
            case "wait":
                self.studio.now += 1000
            case "late" if self.studio.later:
                await self.studio.later.pop()
            case "settle":
                await self.studio.settle()

    def trim(self) -> None:
        for message in self.messages:
            if isinstance(message["content"], str):
                message["content"] = f" {message['content'].strip()}\r\n"

    def renumber(self) -> None:
        names: dict[str, str] = {}
        for message in self.messages:
            for call in message.get("tool_calls") or ():
                names[call["id"]] = f"n{self.count}_{len(names)}"
                call["id"] = names[call["id"]]
            if message["role"] == "tool":
                message["tool_call_id"] = names[message["tool_call_id"]]


def _blocks_of_turn(messages: Sequence[JSONObject]) -> list[JSON]:
    """The signed blocks behind the newest user message: a model that thinks on wants them."""
    begun = max((p for p, m in enumerate(messages) if m["role"] == "user"), default=0)
    return [m["thinking_blocks"] for m in messages[begun:] if "thinking_blocks" in m]


ops = st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 99)), min_size=8, max_size=30)


@pytest.mark.slow
@settings(
    max_examples=2_000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
@example(
    ops=[("ask", 0), ("ask", 0), ("tools", 67), ("renumber", 0), ("ask", 0), ("parallel", 66),
         ("regenerate", 0), ("ask", 0)],
    signs="all", dear=False, window=True,
)  # fmt: skip
@given(
    ops=ops, signs=st.sampled_from(("", "all", "first")), dear=st.booleans(), window=st.booleans()
)
def test_no_conversation_is_broken(
    ops: list[tuple[str, int]], signs: str, dear: bool, window: bool
) -> None:
    """Pairs stay pairs, no signature is invalid or missing, no prefix moves without a new plan."""
    cost = {"min_reclaim": 0.1, "expected_calls": 2 if dear else 1000}
    more = {"cost": cost, "window_tokens": 1500} if window else {"cost": cost}

    async def play() -> None:
        client = Client(Studio(small(**more)), signs)
        for op, seed in ops:
            await client.act(op, seed)
        for work in client.studio.later:
            work.close()

    asyncio.run(play())
