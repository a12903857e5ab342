"""The store forgets what is old or too much, and keeps tenants apart."""

import pytest

from proxy.state.memory import MemoryStore

pytestmark = pytest.mark.anyio


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.item("state/same-ids")
async def test_values_are_the_tenants_own() -> None:
    """The same key of two tenants is two entries."""
    store = MemoryStore(10_000, 60)
    await store.put("a", "k", b"1")
    await store.put("b", "k", b"2")
    assert await store.get("a", "k") == b"1"
    assert await store.get("b", "k") == b"2"
    assert await store.get("c", "k") is None


@pytest.mark.item("state/expired")
async def test_values_expire() -> None:
    """An entry is gone after its time to live, and so are its bytes."""
    clock = Clock()
    store = MemoryStore(10_000, 60, clock)
    await store.put("a", "k", b"1")
    clock.now = 60.0
    assert await store.get_many("a", ["k"]) == {}
    assert store.bytes == 0


@pytest.mark.item("state/eviction")
async def test_the_least_recently_used_leave_first() -> None:
    """Memory is bounded by bytes; reading an entry keeps it."""
    store = MemoryStore(700, 60)
    for key in ("old", "read", "new"):
        await store.put("a", key, b"x" * 20)
        await store.get("a", "old")
    await store.put("a", "last", b"x" * 20)
    assert sorted(await store.get_many("a", ["old", "read", "new", "last"])) == [
        "last", "new", "old",
    ]  # fmt: skip


async def test_a_value_larger_than_the_store_is_not_kept() -> None:
    """One giant entry cannot make the store grow without bound."""
    store = MemoryStore(300, 60)
    await store.put("a", "k", b"x" * 1000)
    assert await store.get("a", "k") is None
    assert store.bytes == 0


async def test_the_first_put_wins() -> None:
    """Two workers that race for one key agree on the value."""
    store = MemoryStore(10_000, 60)
    assert await store.put_if_absent("a", "k", b"1") == b"1"
    assert await store.put_if_absent("a", "k", b"2") == b"1"
