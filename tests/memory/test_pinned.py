"""What stands in a conversation."""

import pytest

from proxy.memory.inject import Block
from proxy.memory.pinned import Pinned, root_of
from proxy.memory.principal import Principal
from proxy.state.memory import MemoryStore

pytestmark = pytest.mark.anyio

ALI, EVA = Principal("t", "ali"), Principal("t", "eva")


async def test_a_block_stays_until_something_is_deleted() -> None:
    """The same bytes, for the same person, as long as nothing of theirs was wiped."""
    pinned = Pinned(MemoryStore(10_000, 60), 600)
    await pinned.keep_block(ALI, "root", Block("B", ("x",)), 0)
    assert await pinned.block(ALI, "root", 0) == Block("B", ("x",))
    assert await pinned.block(ALI, "root", 1) is None
    assert await pinned.block(EVA, "root", 0) is None
    assert await Pinned(MemoryStore(10_000, 60), 600).block(ALI, "root", 0) is None


async def test_a_tail_is_decided_once() -> None:
    """Also for nothing: a note that was not there at first never comes later."""
    pinned = Pinned(MemoryStore(10_000, 60), 600)
    assert await pinned.keep_tail(ALI, "l1", "") == ""
    assert await pinned.keep_tail(ALI, "l1", "note") == ""
    assert await pinned.tails(ALI, {4: "l1", 6: "l2"}) == {4: ""}


def test_the_root_of_a_conversation() -> None:
    """The first message that counts."""
    assert root_of(["", "a", "b"]) == "a"
    assert root_of([]) == ""


@pytest.mark.item("memory/clock")
async def test_clocks_that_were_set() -> None:
    """A block from the future is as stale as one from long ago."""
    now = [10_000.0]
    pinned = Pinned(MemoryStore(10_000, 60), 600, lambda: now[0])
    await pinned.keep_block(ALI, "root", Block("B"), 0)
    now[0] -= 300
    assert await pinned.block(ALI, "root", 0) == Block("B")
    now[0] -= 5_000
    assert await pinned.block(ALI, "root", 0) is None
