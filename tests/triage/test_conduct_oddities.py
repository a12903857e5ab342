"""Histories that no well-behaved client sends: nothing breaks, and what is not understood stays."""

import asyncio
from collections.abc import Mapping

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.triage.conduct import Passed
from proxy.triage.session import Layout, Session
from proxy.triage_settings import Limits
from proxy.wire import JSON, JSONObject
from tests.triage.talk import FakeDecider, Studio, said, small, step, user

pytestmark = pytest.mark.anyio
LONG = "Many words about something that was long ago. " * 20
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(("", "a", LONG, "[2]"))
KEYS = (
    "type", "text", "id", "function", "name", "arguments", "custom", "input", "image_url", "url",
    "signature", "data", "thinking", "cache_control", "source", "refusal",
)  # fmt: skip
ANY = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(("user", "assistant", "tool", "system", "developer", "function", ""))},
    optional={
        "content": ANY,
        "tool_calls": ANY,
        "tool_call_id": ANY,
        "thinking_blocks": ANY,
        "reasoning_details": ANY,
        "function_call": ANY,
        "name": ANY,
    },
)


@pytest.mark.slow
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(odd=st.lists(MESSAGE, min_size=1, max_size=12), window=st.booleans())
def test_any_messages_go_through(odd: list[JSONObject], window: bool) -> None:
    """Decided about, rendered, capped, recalled: without an error, however odd they are."""
    limits = Limits(max_tool_result_chars=200)
    more = {"window_tokens": 900} if window else {}
    studio = Studio(small(**more), limits=limits)

    async def play() -> None:
        messages = [*odd, user("x"), said("y"), *step(1, LONG), said("z"), user("Now?")]
        for more in ([], [said("w"), user("And?")]):
            messages += more
            scene = studio.scene(messages)
            session = await studio.conduct.open(scene)
            if not isinstance(session, Session):
                assert isinstance(session, Passed)
                return
            woven = orjson.loads(session.weave(Layout(recall=session.recallable)))
            assert woven[-1] == messages[-1]
            await session.send()
            recall = session.recall()
            assert recall is not None
            for number in range(1, 5):
                recall.answer(f'{{"n":{number}}}')
            studio.hear(session, 5_000)
            await studio.settle()

    asyncio.run(play())


@pytest.mark.parametrize("field", ["content", "tool_calls", "thinking_blocks"])
@pytest.mark.parametrize("depth", [300, 900])
async def test_what_is_nested_too_deeply_is_left(field: str, depth: int) -> None:
    """JSON that can be read but not written goes up as it came."""
    deep: JSON = orjson.Fragment(b"[" * depth + b"]" * depth)
    studio = Studio(small())
    messages = [user("Hi"), {"role": "assistant", "content": None, field: deep}, user("And?")]
    found = await studio.conduct.open(studio.scene(messages))
    assert isinstance(found, Passed)
    assert found.reason == "malformed"


async def test_deep_arguments_are_left_too() -> None:
    """They are text, and are read for their meaning."""
    studio = Studio(small())
    call = step(1)
    call[0]["tool_calls"][0]["function"]["arguments"] = '{"a":' + "[" * 400 + "]" * 400 + "}"
    found = await studio.conduct.open(studio.scene([user("Hi"), *call, user("And?")]))
    assert isinstance(found, Passed)


async def _dropped(odd: list[JSONObject]) -> list[JSONObject]:
    """What is left when the judge wants everything old to go."""
    studio = Studio(small(), FakeDecider(dict.fromkeys(range(1, 40), "drop")))
    messages = [user(LONG), said("One."), *odd, user(LONG), said("Two."), user("Now?")]
    _, session = await studio.send(messages)
    studio.hear(session, 5_000)
    await studio.settle()
    sent, _ = await studio.send([*messages, said("Three."), user("And?")])
    return sent


ODD: Mapping[str, list[JSONObject]] = {
    "a result without its call": [
        user("Do"), {"role": "tool", "tool_call_id": "gone", "content": LONG}, said("Done."),
    ],
    "calls without all results": [user("Do"), *step(1, LONG, calls=2)[:-1], said("Done.")],
    "a result twice": [user("Do"), *step(1, LONG), step(1, LONG)[1], said("Done.")],
    "calls of one id": [
        user("Do"),
        {**step(1)[0], "tool_calls": [*step(1)[0]["tool_calls"], *step(1)[0]["tool_calls"]]},
        *step(1, LONG)[1:], *step(1, LONG)[1:], said("Done."),
    ],
    "a legacy function": [
        user("Do"),
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": LONG}, said("Done."),
    ],
    "a note between call and result": [
        user("Do"), step(1)[0], {"role": "developer", "content": "Hurry."}, *step(1, LONG)[1:],
        said("Done."),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
async def test_what_is_incomplete_stays_word_for_word(name: str) -> None:
    """It is the client's affair, and nobody knows what a provider makes of it."""
    odd = ODD[name]
    sent = await _dropped(odd)
    rest = [message for message in odd if message.get("role") in ("tool", "function")]
    assert all(message in sent for message in rest)
    called = [m for m in odd if m.get("tool_calls") or m.get("function_call")]
    assert all(message in sent for message in called)
    assert user(LONG) not in sent


async def test_a_prefilled_answer_is_left() -> None:
    """It stands at the end, and the model goes on with it."""
    studio = Studio(small(), FakeDecider({1: "drop", 2: "drop"}))
    messages = [user(LONG), said("One."), user(LONG), said("Two."), user("Now?"), said("Because")]
    _, session = await studio.send(messages)
    studio.hear(session, 5_000)
    await studio.settle()
    longer = [*messages[:-1], said("Because of it."), user("And?")]
    assert (await studio.send(longer))[0][-2:] == longer[-2:]
    assert (await studio.send(messages))[0][-1] == said("Because")


async def test_a_gemini_signature_goes_with_its_call_or_stays_with_it() -> None:
    """Cleared and noted steps keep their calls as the provider made them."""
    studio = Studio(small(), FakeDecider({2: "clear", 3: "compress", 4: "drop", 5: "drop"}))
    steps = [step(number, LONG) for number in range(1, 6)]
    for number, (call, _) in enumerate(steps):
        google = {"google": {"thought_signature": f"signature-{number}"}}
        call["tool_calls"][0]["extra_content"] = google
    messages = [user("Do"), *(message for one in steps for message in one)]
    _, session = await studio.send(messages)
    studio.hear(session, 5_000)
    await studio.settle()
    sent, session = await studio.send([*messages, *step(6)])
    assert session.acts
    kept = [m for m in sent if m.get("tool_calls") and m in messages]
    assert [m["tool_calls"][0]["id"] for m in kept] == ["c1_0", "c2_0", "c3_0", "c5_0"]
    assert all("extra_content" in m["tool_calls"][0] for m in kept)


async def test_a_marked_part_stays_and_so_does_what_is_before_it() -> None:
    """A client that caches up to a place has a reason; marks on the newest turn move along."""
    marked = {"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}
    content = [{"role": "user", "content": [marked]}]
    sent = await _dropped([*content, said("Done.")])
    assert sent[0] == user(LONG)
    assert content[0] in sent
    assert sent.count(user(LONG)) == 1
