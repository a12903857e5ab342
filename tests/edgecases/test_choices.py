"""Conversations in which the client's parameters change with every request."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from proxy.wire import JSONObject
from tests.edgecases.scene import names, predicting, result, see, user
from tests.test_draft import Whimsical
from tests.tools.samples import city_tools
from tests.turns import request, stage

NAMES = [tool["function"]["name"] for tool in city_tools()]
WORDS = ["weather", "storm", "mail", "send", "delete", "thanks"]


def _named(name: str) -> JSONObject:
    return {"type": "function", "function": {"name": name}}


def _choose(dice: random.Random) -> JSONObject:
    """A choice, and sometimes other parameters beside it."""
    allowed = [_named(name) for name in dice.sample(NAMES, dice.randint(1, 5))]
    mode = dice.choice(["auto", "required"])
    choice = dice.choice([
        None,
        "auto",
        "none",
        "required",
        _named(dice.choice([*NAMES, "tool_search"])),
        {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": allowed}},
    ])  # fmt: skip
    fields: JSONObject = {} if choice is None else {"tool_choice": choice}
    more: list[JSONObject] = [
        {"parallel_tool_calls": False},
        {"max_tokens": 50},
        {"response_format": {"type": "json_object"}},
    ]
    for field in more:
        fields |= field if dice.random() < 0.25 else {}
    return fields


def _assert_acceptable(body: JSONObject) -> None:
    """What any provider checks: choices name declared tools, every call has its result."""
    declared = set(names(body))
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        inner = choice.get("allowed_tools", {"tools": [choice]})
        chosen = {tool["function"]["name"] for tool in inner["tools"]}
        assert chosen
        assert chosen <= declared
    assert choice is None or declared
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        waiting = [made["id"] for made in message.get("tool_calls") or []]
    assert not waiting


async def _converse(seed: int, delivery: str, stream: bool, eager_chars: int) -> None:
    dice = random.Random(seed)
    model = Whimsical(dice, stream)
    settings = predicting(delivery=delivery, eager_chars=eager_chars)
    theatre = stage(settings=settings, answer=model.answer)
    history: list[JSONObject] = []
    for turn in range(3):
        history.append(user(f"{' '.join(dice.sample(WORDS, 2))} {turn}"))
        for _ in range(3):
            seen = await see(theatre, request(*history, stream=stream, **_choose(dice)))
            assert not {"tool_search", "call_tool", ""} & set(seen.names)
            history = [*history, seen.message, *(result(made["id"]) for made in seen.calls)]
            if not seen.calls:
                break
    for body in theatre.bodies:
        _assert_acceptable(body)


@pytest.mark.item("params/changing")
@limits(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    delivery=st.sampled_from(["append", "frozen"]),
    stream=st.booleans(),
    eager_chars=st.sampled_from([0, 4_000]),
)
def test_any_choice_at_any_time(seed: int, delivery: str, stream: bool, eager_chars: int) -> None:
    """The upstream never gets a request that it must refuse, the client never a call of ours."""
    asyncio.run(_converse(seed, delivery, stream, eager_chars))
