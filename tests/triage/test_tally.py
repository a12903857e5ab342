"""What is counted."""

import pytest

from tests.triage.talk import FakeDecider, Studio, said, small, user

pytestmark = pytest.mark.anyio
OLD = [user("One " * 500), said("Yes"), user("Two " * 50), said("Yes"), user("Three")]


async def test_decisions_and_cached_tokens_are_counted() -> None:
    """Before and after a prefix moved, so that a plan's effect on the cache shows."""
    studio = Studio(small(), FakeDecider({1: "drop"}))
    messages = list(OLD)
    for cached in (0, 10, 90):
        _, session = await studio.send(messages)
        studio.hear(session, 2_000, cached)
        await studio.settle()
        messages += [said("x"), user("y")]

    def count(name: str, **labels: str) -> float | None:
        return studio.registry.get_sample_value(f"usher_triage_{name}_total", labels)

    assert count("plans", outcome="pays") == 1
    assert count("cached_tokens", prefix="moved") == 10
    assert count("cached_tokens", prefix="stable") == 90
    assert count("prompt_tokens", prefix="stable") == 4_000
    assert (count("tokens_saved") or 0) > 0
    assert (count("plans", outcome="failed") or 0) + (count("plans", outcome="too little") or 0) > 0


async def test_nothing_to_do_is_no_failure() -> None:
    """A missing judge is one; a conversation that is still short is not."""
    for studio, outcome in (
        (Studio(small(min_turns=9, protect={"turns": 1, "steps": 9})), "nothing to do"),
        (Studio(small(), None), "failed"),
    ):
        _, session = await studio.send(OLD)
        studio.hear(session, 2_000)
        await studio.settle()
        name = "usher_triage_plans_total"
        assert studio.registry.get_sample_value(name, {"outcome": outcome}) == 1
