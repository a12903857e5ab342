"""Bodies collected by their connection."""

import asyncio

import pytest

from proxy.edge.intake import CONNECTION, Intake, connection_of, loop_of
from proxy.edge.watch import ClientGone

pytestmark = pytest.mark.anyio


async def test_pieces_wait_for_the_end() -> None:
    """Whoever waits gets all pieces at once, in their order."""
    intake = Intake(asyncio.get_running_loop(), 10)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(intake.wait())
        intake.add(b"ab")
        await asyncio.sleep(0)
        assert not waiting.done()
        intake.add(b"cd")
        intake.end()
    assert waiting.result() == [b"ab", b"cd"]


async def test_without_room_the_wait_is_over() -> None:
    """What is too large anyway is not waited for; what still comes changes nothing."""
    intake = Intake(asyncio.get_running_loop(), 3)
    intake.add(b"abcd")
    assert await intake.wait() == [b"abcd"]
    intake.end()
    intake.lose()


async def test_lost_connection_ends_the_wait() -> None:
    """A client that leaves inside its body is no longer waited for."""
    intake = Intake(asyncio.get_running_loop(), 10)
    intake.lose()
    with pytest.raises(ClientGone):
        async with asyncio.timeout(1):
            await intake.wait()


async def test_other_servers_have_no_such_connection() -> None:
    """A scope of any ASGI server will do; its loop is the running one."""
    assert connection_of({}) is None
    assert loop_of({}) is asyncio.get_running_loop()
    assert connection_of({CONNECTION: None}) is None
