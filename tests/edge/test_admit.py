"""The gate: who is inside, and how a gateway empties."""

import asyncio

import pytest

from proxy.edge.admit import Gate
from proxy.errors import Unavailable

pytestmark = pytest.mark.anyio


async def test_draining_waits_for_the_last_request() -> None:
    """Draining ends when the last running request has left."""
    gate = Gate()
    gate.enter()
    async with asyncio.TaskGroup() as group:
        drained = group.create_task(gate.drain(30))
        await asyncio.sleep(0)
        assert not drained.done()
        gate.leave()
    assert gate.inside == 0


async def test_draining_turns_new_requests_away() -> None:
    """A request that comes too late is told to come back."""
    gate = Gate()
    await gate.drain(30)
    with pytest.raises(Unavailable) as refusal:
        gate.enter()
    assert refusal.value.retry_after == 1.0


async def test_draining_has_a_deadline() -> None:
    """A request that never ends does not keep the gateway from stopping."""
    gate = Gate()
    gate.enter()
    await gate.drain(0.01)
    assert gate.inside == 1


async def test_rush_ends_the_wait() -> None:
    """Who is told to hurry waits no longer."""
    gate = Gate()
    gate.enter()
    async with asyncio.TaskGroup() as group:
        group.create_task(gate.drain(30))
        await asyncio.sleep(0)
        gate.rush()
    assert gate.inside == 1
