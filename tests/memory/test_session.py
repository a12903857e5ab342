"""One turn's memory, from its beginning to what is told."""

import asyncio

import pytest

from proxy.memory.change import Outcome
from proxy.memory.principal import Principal
from proxy.memory.session import Session
from proxy.wire import JSONObject

pytestmark = pytest.mark.anyio

ALI = Principal("t", "ali")
UPDATE = Outcome("update", "city", "Rome")


def late(into: list[JSONObject]) -> Session:
    return Session("r", ALI, late=lambda _, artifacts: into.extend(artifacts))


async def test_what_is_known_in_time_is_told_once() -> None:
    """The reply gets it, and nothing is owed."""
    owed: list[JSONObject] = []
    session = late(owed)
    session.settle([UPDATE, Outcome("unchanged", "x")])
    assert [a["key"] for a in await session.join()] == ["city"]
    assert [a["key"] for a in session.said()] == ["city"]
    session.give_back()
    assert (await session.join(), session.said(), owed) == ([], [], [])


async def test_what_is_known_too_late_is_owed() -> None:
    """After the reply has gone, the next one tells."""
    owed: list[JSONObject] = []
    session = late(owed)
    assert session.live
    assert await session.join() == []
    session.settle([UPDATE])
    assert [a["key"] for a in owed] == ["city"]
    assert not session.live


async def test_a_reply_that_never_told() -> None:
    """A failed reply gives back what it had."""
    owed: list[JSONObject] = []
    session = late(owed)
    session.owe([{"key": "old"}])
    session.give_back()
    assert owed == [{"key": "old", "late": True}]


def test_the_header() -> None:
    """Status, reason and figures; never a key or a value."""
    session = Session("r", ALI, "pass", injected=3, dropped=("a", "b"))
    assert session.header() == b"pass;injected=3;dropped=2"
    assert Session("r", None, "off", "no_user").header() == b"off;reason=no_user"
    assert session.render([]) == b""


async def test_whether_something_was_to_be_remembered() -> None:
    """Known once the gate has judged; an unmeasured message counts as none."""
    session = Session("r", ALI, "pending", score=0.9)
    waiting = asyncio.get_running_loop().create_task(session.wanted())
    await asyncio.sleep(0)
    assert not waiting.done()
    session.status = "pass"
    session.settle()
    assert await waiting
    assert not await Session("r", ALI, "skip", score=0.1).wanted()
    assert not await Session("r", ALI, "pass").wanted()
