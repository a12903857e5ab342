"""Near the window a plan is made by rule, before the provider would refuse."""

import pytest

from tests.triage.talk import FakeDecider, Studio, check_pairs, said, small, step, user

pytestmark = pytest.mark.anyio


def _studio(window: int) -> Studio:
    return Studio(small(window_tokens=window), FakeDecider({}))


async def test_old_results_go_first() -> None:
    """The oldest steps are cleared until the prompt fits; their calls stay."""
    loop = [user("Do it"), *[m for n in range(6) for m in step(n, "x" * 2_000)]]
    sent, session = await _studio(2_500).send(loop)
    check_pairs(sent)
    cleared = ["removed" in m["content"] for m in sent if m["role"] == "tool"]
    assert cleared == sorted(cleared, reverse=True)
    assert (cleared[0], cleared[-1]) == (True, False)
    assert session.plan is not None
    assert session.plan.reason == "emergency"


async def test_then_whole_turns_but_no_constraint() -> None:
    """What the user ruled stays, however full it gets."""
    turns = [m for n in range(4) for m in (user(f"{n} " + "x" * 2_000), said("Yes."))]
    rule = [user("Never use port 80."), said("Fine.")]
    sent, _ = await _studio(1_500).send([*rule, *turns, user("Now?")])
    said_so = [m["content"] for m in sent]
    assert "Never use port 80." in said_so
    assert len(str(sent)) < 1_500 * 4


async def test_the_same_plan_holds_on_the_next_request() -> None:
    """The prefix does not move again."""
    studio = _studio(2_500)
    loop = [user("Do it"), *[m for n in range(6) for m in step(n, "x" * 2_000)]]
    first, _ = await studio.send(loop)
    second, _ = await studio.send([*loop, said("Done."), user("Thanks")])
    assert second[: len(first)] == first


async def test_with_room_nothing_is_done() -> None:
    """Nor without a window that is known."""
    messages = [user("Do it"), *step(1), user("x")]
    assert (await _studio(100_000).send(messages))[0] == messages
    assert (await Studio(small()).send([user("x" * 10_000)]))[0] == [user("x" * 10_000)]


async def test_the_window_of_the_model_counts() -> None:
    """The operator's word comes first; what is in no table is not guessed."""
    loop = [user("Do it"), *[m for n in range(6) for m in step(n, "x" * 2_000)]]
    for settings, windows, reason in (
        ({}, {"m": 2_500}, "emergency"),
        ({}, {"other": 2_500}, None),
        ({"window_tokens": 100_000}, {"m": 2_500}, None),
    ):
        studio = Studio(small(**settings), FakeDecider({}), windows=windows)
        _, session = await studio.send(loop)
        assert (session.plan and session.plan.reason) == reason


async def test_a_picture_is_no_long_text() -> None:
    """A million bytes of one are about as many tokens as a page."""
    url = {"url": "data:image/png;base64," + "A" * 100_000}
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": url}]}
    messages = [user("Do it"), *step(1, "x" * 500), said("x"), picture, said("A cat."), user("So?")]
    sent, session = await _studio(4_000).send(messages)
    assert sent == messages
    assert session.plan is None


async def test_the_provider_says_how_long_a_token_is() -> None:
    """A text of few tokens a byte is not near the window although it looks so."""
    studio = _studio(2_500)
    loop = [user("Do it"), *[m for n in range(4) for m in step(n, "x" * 2_000)]]
    _, session = await studio.send(loop)
    studio.hear(session, 900)
    await studio.settle()
    loop += step(5, "x" * 2_000)
    _, session = await studio.send(loop)
    assert not session.acts
    other = _studio(2_500)
    _, session = await other.send(loop)
    assert session.acts


async def test_what_the_judge_would_keep_goes_all_the_same() -> None:
    """And what it would drop goes first, also where that did not pay yet."""
    talk = [m for n in range(4) for m in (user(f"{n} " + "abcd"[n] * 2_000), said("Yes."))]
    dear = {"min_reclaim": 0, "expected_calls": 0}
    studio = Studio(small(window_tokens=3_000, cost=dear), FakeDecider({3: "drop"}))
    _, session = await studio.send([*talk, user("Now?")])
    studio.hear(session)
    await studio.settle()
    sent, session = await studio.send([*talk, user("Now?"), said("x"), user("5 " + "e" * 4_000)])
    assert session.plan is not None
    assert session.plan.reason == "emergency"
    assert sorted(act.number for act in session.acts.values()) == [1, 2, 3]
    assert [m["content"][0] for m in sent if m["role"] == "user"] == ["E", "3", "N", "5"]
