"""Plans in the store: one per head, found by the longest beginning."""

import asyncio

import pytest

from proxy.state.memory import MemoryStore
from proxy.triage.plan import Act, Plan, Sent
from proxy.triage.signed import seal_of
from proxy.triage.store import Plans, Seen
from tests.triage.talk import converse, said, user

pytestmark = pytest.mark.anyio
SHORT = [user("One"), said("Yes"), user("Two")]
LONG = [*SHORT, said("Yes"), user("Three")]


def _plan(messages: list[dict[str, object]], label: str) -> Plan:
    talk = converse(messages)
    return Plan(talk.head.hex(), {"x": Act("drop", label, 1)})


async def test_the_longest_beginning_counts() -> None:
    """A branch finds what was decided before it branched."""
    plans = Plans(MemoryStore(1_000_000, 60))
    for messages, label in ((SHORT, "short"), (LONG, "long")):
        await plans.commit("t", converse(messages), _plan(messages, label))
    later = converse([*LONG, said("x"), user("Four")])
    branch = converse([*SHORT, said("No"), user("Other")])
    assert (await plans.find("t", later)) == _plan(LONG, "long")
    assert (await plans.find("t", branch)) == _plan(SHORT, "short")
    assert await plans.find("t", converse([user("Elsewhere")])) is None


async def test_tenants_and_users_are_apart() -> None:
    """Nobody finds another's plan."""
    plans = Plans(MemoryStore(1_000_000, 60))
    await plans.commit("t", converse(SHORT), _plan(SHORT, "x"))
    assert await plans.find("other", converse(SHORT)) is None
    assert await plans.find("t", converse(SHORT, "ann")) is None


async def test_two_workers_commit_one_plan() -> None:
    """The loser takes the winner's."""
    store = MemoryStore(1_000_000, 60)
    one, two = Plans(store), Plans(store)
    talk = converse(SHORT)
    kept = await asyncio.gather(
        one.commit("t", talk, _plan(SHORT, "one")), two.commit("t", talk, _plan(SHORT, "two"))
    )
    assert kept[0] == kept[1]
    assert await two.find("t", talk) == kept[0]


async def test_shadow_plans_are_apart() -> None:
    """What was only observed is not in force when triage is switched on."""
    store = MemoryStore(1_000_000, 60)
    await Plans(store, "shadow").commit("t", converse(SHORT), _plan(SHORT, "x"))
    assert await Plans(store).find("t", converse(SHORT)) is None


async def test_a_lost_store_is_no_plan() -> None:
    """The full history goes up."""
    store = MemoryStore(1_000_000, 60)
    plans = Plans(store)
    await plans.commit("t", converse(SHORT), _plan(SHORT, "x"))
    store.clear()
    assert await plans.find("t", converse(SHORT)) is None
    assert await plans.get("t", converse(SHORT).head.hex()) is None


async def test_records_come_back() -> None:
    """How a request went up, what a block was made from, what was decided."""
    plans = Plans(MemoryStore(1_000_000, 60))
    blocks = [{"type": "thinking", "signature": "one"}, {"type": "thinking", "signature": "two"}]
    talk = converse([user("One"), said("Yes", thinking_blocks=blocks), user("Two")])
    assert await plans.look("t", talk, [b"h"]) == Seen()
    await plans.note("t", b"h", Sent("p", "s", 1.5, 3.25))
    await plans.made("t", seal_of(b"one"), "s")
    await plans.audit("t", "req_1", {"reason": "pays"})
    seen = Seen(False, {b"h": Sent("p", "s", 1.5, 3.25)}, {seal_of(b"one"): "s"})
    assert await plans.look("t", talk, [b"h", b"i"]) == seen
    await plans.commit("t", talk, Plan(talk.head.hex()))
    assert (await plans.look("t", talk, [])).rooted
    assert await plans.explain("t", "req_1") == {"reason": "pays"}
    assert await plans.explain("other", "req_1") is None
