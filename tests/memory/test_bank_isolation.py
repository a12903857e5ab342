"""Two hundred people share one store: whatever they do, nobody meets another's rows."""

import asyncio
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.memory.bank import Bank
from proxy.memory.change import Delete, Origin, Rename, Store
from proxy.memory.database import Database, memory_url
from proxy.memory.principal import Principal

NAMES = st.sampled_from(
    ["a", "A", "ab", "a:b", "a%", "_", "a'b", "ä", "default", "*", "a\x00b"[:1]]
)
PEOPLE = st.builds(Principal, NAMES, NAMES, st.sampled_from(["", "app:x", "a"]))
KEYS = st.sampled_from(["city", "diet", "c"])
STEPS = st.tuples(
    PEOPLE, st.sampled_from(["set", "delete", "rename", "forget", "undo", "claim"]), KEYS
)


async def _play(steps: list[tuple[Principal, str, str]], folder: Path) -> None:
    bank = Bank(Database(memory_url(None, folder)), 10_000)
    model: dict[Principal, dict[str, str]] = {}
    counts: dict[Principal, int] = {}
    claims: set[tuple[Principal, str]] = set()
    for number, (whose, what, key) in enumerate(steps):
        mine = model.setdefault(whose, {})
        value = f"{whose!r} {number}"
        if what == "set":
            await bank.change(whose, [Store(key, value, 1)], Origin())
            mine[key] = value
            counts[whose] = counts.get(whose, 0) + 1
        elif what == "delete":
            (outcome,) = await bank.change(whose, [Delete(key)], Origin())
            assert (outcome.kind == "delete") == (key in mine)
            counts[whose] = counts.get(whose, 0) + (mine.pop(key, None) is not None)
        elif what == "rename":
            (outcome,) = await bank.change(whose, [Rename(key, f"{key}2")], Origin())
            if outcome.kind == "update":
                mine[f"{key}2"] = mine.pop(key)
                counts[whose] = counts.get(whose, 0) + 1
        elif what == "forget":
            assert await bank.forget(whose, Origin()) == len(mine)
            mine.clear()
            claims = {claim for claim in claims if claim[0] != whose}
            counts[whose] = counts.get(whose, 0) + 1
        elif what == "claim":
            assert await bank.claim(whose, key, "r") == ((whose, key) not in claims)
            claims.add((whose, key))
        for person, expected in model.items():
            assert {m.key: m.value for m in (await bank.read(person)).memories} == expected
    for person in model:
        numbers = [event["number"] for event in await bank.events(person, limit=500)]
        assert numbers == list(range(counts.get(person, 0), 0, -1))
    await bank.aclose()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=5, max_size=20))
def test_nobody_meets_anothers_rows(steps: list[tuple[Principal, str, str]]) -> None:
    """Each sees exactly what a store of their own would hold; even event numbers count alone."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_play(steps, Path(folder)))


async def _fill(url: str) -> None:
    bank = Bank(Database(url), 100)
    people = [Principal(f"t{i % 10}", f"u{i % 20}", f"s{i}") for i in range(200)]
    for person in people:
        (outcome,) = await bank.change(person, [Store("city", f"{person}", 90)], Origin())
        assert outcome.kind == "update"
    for person in people:
        snapshot = await bank.read(person)
        assert [m.value for m in snapshot.memories] == [f"{person}"]
        assert len(await bank.events(person)) == 1
    await bank.aclose()


def test_two_hundred_people_use_the_same_key(store_url: str) -> None:
    """The same key in two hundred memories collides with nothing and shares no budget."""
    asyncio.run(_fill(store_url))


async def _time(url: str) -> tuple[float, float]:
    """Median ms to ask for a key that 300 others have, and for one that nobody has."""
    bank = Bank(Database(url), 10_000)
    for number in range(300):
        await bank.change(Principal("t", f"u{number}"), [Store("diagnosis", "x", 1)], Origin())
    me, spent = Principal("t", "me"), {"diagnosis": list[float](), "hobby_of_nobody": list[float]()}
    await bank.change(me, [Store("city", "Rome", 1)], Origin())
    for _ in range(150):
        for key, times in spent.items():
            begun = time.perf_counter()
            (outcome,) = await bank.change(me, [Delete(key)], Origin())
            times.append((time.perf_counter() - begun) * 1000)
            assert outcome.kind == "missing"
    await bank.aclose()
    others, nobodys = (statistics.median(times) for times in spent.values())
    return others, nobodys


def test_nobody_times_anothers_keys(store_url: str) -> None:
    """Asking for a key takes as long whether or not somebody else has it."""
    others, nobodys = asyncio.run(_time(store_url))
    assert 0.6 < others / nobodys < 1.6, f"{others:.2f} ms, {nobodys:.2f} ms"


def test_statements_only_touch_ones_own_rows(tmp_path: Path) -> None:
    """SQLite's own plan: each table is searched by tenant, user and scope, none is scanned."""
    url = memory_url(None, tmp_path)
    asyncio.run(_fill(url))
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        for table in ("usher_memory", "usher_memory_events", "usher_memory_people"):
            query = f'SELECT * FROM {table} WHERE tenant=? AND "user"=? AND scope=?'
            plan = connection.execute(f"EXPLAIN QUERY PLAN {query}", ("t", "u", "s")).fetchall()
            assert [str(row[3]).startswith("SEARCH") for row in plan] == [True]
            assert "tenant=? AND user=? AND scope=?" in plan[0][3]
    connection.close()
