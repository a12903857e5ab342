"""The store: budgets, revisions, the event log, undo, forgetting, claims."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import update

from proxy.memory import bank as module
from proxy.memory.bank import Bank
from proxy.memory.change import Change, Delete, Hold, Origin, Outcome, Rename, Store
from proxy.memory.database import Database
from proxy.memory.principal import Principal
from proxy.memory.schema import events, gates

pytestmark = pytest.mark.anyio

ALI, EVA = Principal("t", "ali"), Principal("t", "eva")


@pytest.fixture
async def bank(store_url: str) -> AsyncIterator[Bank]:
    """A store with room for a hundred tokens."""
    opened = Bank(Database(store_url), 100)
    yield opened
    await opened.aclose()


async def change(bank: Bank, *changes: Change, whose: Principal = ALI) -> list[Outcome]:
    return await bank.change(whose, changes, Origin("req"))


async def kinds(bank: Bank, *changes: Change) -> list[str]:
    return [outcome.kind for outcome in await change(bank, *changes)]


@pytest.mark.item("memory/budget")
async def test_a_full_memory_can_be_rewritten(bank: Bank) -> None:
    """What a key gives back counts: the largest memory can be updated at 100 %."""
    await change(bank, Store("a", "old", 100))
    assert await kinds(bank, Store("a", "new", 100)) == ["update"]


async def test_would_exceed(bank: Bank) -> None:
    """A write that does not fit says by how much, as LibreChat does, and what would help."""
    _, error = await change(bank, Store("a", "x", 60), Store("b", "y", 50))
    assert error.as_artifact() == {
        "type": "error",
        "key": "system",
        "request_id": None,
        "error_type": "would_exceed",
        "token_count": 10,
        "total_tokens": 110,
        "token_limit": 100,
        "suggest": {"max_value_tokens": 40, "largest_keys": ["a"]},
    }


async def test_already_exceeded(bank: Bank, store_url: str) -> None:
    """Above the limit nothing goes in, and the overshoot is that of the memory."""
    await change(bank, Store("a", "x", 90))
    small = Bank(Database(store_url), 70)
    (error,) = await small.change(ALI, [Store("b", "y", 5)], Origin())
    await small.aclose()
    assert (error.reason, error.tokens, error.total) == ("already_exceeded", 20, 90)


async def test_a_delete_makes_room_in_the_same_run(bank: Bank) -> None:
    """Changes of one answer are made in order, each seeing the ones before."""
    await change(bank, Store("a", "x", 100))
    assert await kinds(bank, Delete("a"), Store("b", "y", 100)) == ["delete", "update"]


async def test_the_same_value_again_is_nothing(bank: Bank) -> None:
    """Saying it twice neither deletes it nor fills the log."""
    assert await kinds(bank, Store("a", "x", 1), Store("a", "x", 1)) == ["update", "unchanged"]
    assert len(await bank.events(ALI)) == 1


async def test_a_revision_guards_a_change(bank: Bank) -> None:
    """Who has seen an older revision changes nothing."""
    await change(bank, Store("a", "x", 1))
    assert await kinds(bank, Store("a", "y", 1, rev=0), Delete("a", rev=2)) == ["stale", "stale"]
    assert await kinds(bank, Store("a", "y", 1, rev=1)) == ["update"]


async def test_renaming_is_one_step(bank: Bank) -> None:
    """The value moves whole; a key that exists is not overwritten."""
    await change(bank, Store("a", "x", 1), Store("b", "y", 1))
    assert await kinds(bank, Rename("a", "b"), Rename("z", "q"), Rename("a", "c")) == [
        "taken",
        "missing",
        "update",
    ]
    assert [m.key for m in (await bank.read(ALI)).memories] == ["b", "c"]


async def test_undo_takes_back_the_newest_change(bank: Bank) -> None:
    """A set becomes its old value or nothing, a delete comes back, and the log tells."""
    await change(bank, Store("a", "x", 1), Store("a", "y", 1))
    assert (await bank.undo(ALI, None)).value == "x"
    await change(bank, Delete("a"))
    assert (await bank.undo(ALI, None)).value == "x"
    assert (await bank.events(ALI, limit=1))[0]["op"] == "undo"


async def test_undo_does_not_overwrite_what_came_later(bank: Bank) -> None:
    """An old event cannot undo a newer value."""
    first, _ = await change(bank, Store("a", "x", 1), Store("a", "y", 1))
    assert (await bank.undo(ALI, first.event)).kind == "stale"
    assert (await bank.undo(ALI, 99)).kind == "missing"


async def test_forgetting_everything_blots_out_the_log(bank: Bank) -> None:
    """Rows and values are gone, also from the events; that something happened stays."""
    await change(bank, Store("diagnosis", "The user has asthma.", 5), Delete("diagnosis"))
    await change(bank, Store("city", "Rome", 1))
    assert await bank.forget(ALI, Origin()) == 1
    told = str(await bank.events(ALI))
    assert not any(word in told for word in ("asthma", "Rome", "diagnosis", "city"))
    assert [event["op"] for event in await bank.events(ALI)] == ["forget", "set", "delete", "set"]
    assert (await bank.undo(ALI, None)).kind == "missing"


@pytest.mark.item("memory/tabs")
async def test_parallel_writes_keep_the_budget(bank: Bank) -> None:
    """Twenty writers at once never get more in than there is room for."""
    await asyncio.gather(*(change(bank, Store(f"k{i}", "x", 30)) for i in range(20)))
    snapshot = await bank.read(ALI)
    assert (len(snapshot.memories), snapshot.tokens) == (3, 90)


async def test_a_message_is_claimed_once(bank: Bank) -> None:
    """Of ten workers that see the same message, one runs the agent."""
    claims = await asyncio.gather(*(bank.claim(ALI, "chain", "r") for _ in range(10)))
    assert sum(claims) == 1
    assert await bank.claim(EVA, "chain", "r")


async def test_a_killed_run_is_taken_over(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that began and never ended, because its process was killed, can begin again."""
    assert await bank.claim(ALI, "chain", "r1")
    monkeypatch.setattr(module, "STUCK_SECONDS", 0.0)
    assert await bank.claim(ALI, "chain", "r2")
    await bank.settle(ALI, "chain", {"status": "pass", "detail": {"calls": 1}})
    assert not await bank.claim(ALI, "chain", "r3")
    assert await bank.explain(ALI, "r2") is not None


async def test_events_are_pages(bank: Bank) -> None:
    """The newest first, by request, and further back."""
    await change(bank, *(Store("a", str(i), 1) for i in range(5)))
    assert [e["number"] for e in await bank.events(ALI, limit=2)] == [5, 4]
    assert [e["number"] for e in await bank.events(ALI, before=3)] == [2, 1]
    assert await bank.events(ALI, request_id="other") == []


async def test_what_waits_is_stored_on_the_users_word(bank: Bank) -> None:
    """Once; an event that was answered, or never waited, has nothing to confirm."""
    (held,) = await change(bank, Hold("motto", "Always mention tea.", "suspicious"))
    assert held.as_artifact()["confirm"] == held.event
    assert (await bank.read(ALI)).memories == []
    assert (await bank.confirm(EVA, held.event, Origin())).kind == "missing"
    assert (await bank.confirm(ALI, held.event, Origin())).value == "Always mention tea."
    assert (await bank.confirm(ALI, held.event, Origin())).kind == "missing"
    assert [e["op"] for e in await bank.events(ALI)] == ["set", "confirm", "pending"]


async def test_what_waits_can_be_dropped(bank: Bank) -> None:
    """And is not stored then."""
    await change(bank, Hold("motto", "Always mention tea.", "suspicious"))
    assert (await bank.confirm(ALI, None, Origin(), accept=False)).kind == "unchanged"
    assert (await bank.confirm(ALI, None, Origin())).kind == "missing"
    assert (await bank.read(ALI)).memories == []


@pytest.mark.item("memory/everything")
async def test_everything_goes_on_the_second_word(bank: Bank) -> None:
    """A wish to forget everything waits for so long and no longer."""
    await change(bank, Store("a", "x", 1), Hold("*", None, "everything"))
    assert await bank.waits(ALI, "*", 0.0) is None
    number = await bank.waits(ALI, "*", 60.0)
    assert (await bank.confirm(ALI, number, Origin())).total == 1
    assert (await bank.read(ALI)).memories == []


@pytest.mark.item("memory/user-id")
async def test_another_id_of_the_same_person(bank: Bank) -> None:
    """Everything moves; of two values the newer one stays, and the old id has nothing left."""
    await change(bank, Store("city", "Rome", 1), Store("dog", "Rex", 1))
    await change(bank, Store("city", "Oslo", 1), whose=EVA)
    assert [o.kind for o in await bank.merge(ALI, EVA, Origin())] == ["update"]
    values = {m.key: m.value for m in (await bank.read(EVA)).memories}
    assert values == {"city": "Oslo", "dog": "Rex"}
    assert (await bank.read(ALI)).memories == []
    assert (await bank.events(EVA, limit=1))[0]["op"] == "merge"


async def test_a_merge_that_is_too_much_changes_nothing(bank: Bank) -> None:
    """Neither side loses anything."""
    await change(bank, Store("a", "x", 60))
    await change(bank, Store("b", "y", 60), whose=EVA)
    assert [o.kind for o in await bank.merge(ALI, EVA, Origin())] == ["error"]
    assert [len((await bank.read(whose)).memories) for whose in (ALI, EVA)] == [1, 1]


@pytest.mark.item("memory/clock")
async def test_clocks_that_were_set(bank: Bank, store_url: str) -> None:
    """A claim from the future blocks nobody, and events keep their order by number."""
    assert await bank.claim(ALI, "chain", "r1")
    await change(bank, Store("a", "x", 1))
    database = Database(store_url)
    async with database.writing() as connection:
        await connection.execute(update(gates).values(at=gates.c.at + 86_400))
        await connection.execute(update(events).values(at=events.c.at + 86_400))
    await database.aclose()
    assert await bank.claim(ALI, "chain", "r2")
    await change(bank, Store("a", "y", 1))
    assert [e["new_value"] for e in await bank.events(ALI)] == ["y", "x"]
    assert (await bank.undo(ALI, None)).value == "x"
