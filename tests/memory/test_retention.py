"""What is too old is not shown any more, and then gone."""

import time

import pytest
from sqlalchemy import update

from proxy.memory.bank import Bank
from proxy.memory.change import Origin, Store
from proxy.memory.database import Database
from proxy.memory.principal import Principal
from proxy.memory.retention import DAY, shorter
from proxy.memory.schema import events, memories

pytestmark = pytest.mark.anyio

ALI, EVA = Principal("t", "ali"), Principal("t", "eva")


async def age(database: Database, days: float) -> None:
    """Make everything that is stored so much older."""
    async with database.writing() as connection:
        for table, column in ((memories, "updated_at"), (events, "at")):
            earlier = {column: table.c[column] - days * DAY}
            await connection.execute(update(table).values(earlier))


async def keys(bank: Bank, whose: Principal = ALI) -> list[str]:
    return [memory.key for memory in (await bank.read(whose)).memories]


def test_the_shorter_time_counts() -> None:
    """The operator's or the person's."""
    assert (shorter(None, None), shorter(3, None), shorter(3, 2)) == (None, 3, 2)


@pytest.mark.item("memory/expired")
async def test_the_operators_time(store_url: str) -> None:
    """Not shown at once, deleted with its events by the sweep; running conversations refresh."""
    database = Database(store_url)
    bank = Bank(database, 100, retention_days=30)
    await bank.start()
    await bank.change(ALI, [Store("old", "x", 60)], Origin())
    await age(database, 31)
    await bank.change(ALI, [Store("new", "y", 60)], Origin())
    assert await keys(bank) == ["new"]
    before = (await bank.read(ALI)).person.wipes
    await bank.sweep()
    snapshot = await bank.read(ALI)
    assert snapshot.person.wipes == before + 1
    assert [event["key"] for event in await bank.events(ALI)] == ["new"]
    await bank.aclose()


@pytest.mark.item("memory/expired")
async def test_a_persons_own_time(store_url: str) -> None:
    """It takes hers and leaves everybody else's."""
    database = Database(store_url)
    bank = Bank(database, 100)
    for whose in (ALI, EVA):
        await bank.change(whose, [Store("city", "Rome", 1)], Origin())
    await bank.choose(EVA, {"retention_days": 7.0})
    await age(database, 8)
    assert (await keys(bank), await keys(bank, EVA)) == (["city"], [])
    await bank.sweep()
    await bank.choose(EVA, {"retention_days": None})
    assert (await keys(bank), await keys(bank, EVA)) == (["city"], [])
    assert await bank.events(EVA) == []
    await bank.aclose()


async def test_an_expired_key_can_be_written_again(store_url: str) -> None:
    """Before a sweep has come by, too; it is a new memory then."""
    database = Database(store_url)
    bank = Bank(database, 100, retention_days=1)
    await bank.change(ALI, [Store("city", "Rome", 90)], Origin())
    await age(database, 2)
    (outcome,) = await bank.change(ALI, [Store("city", "Oslo", 90)], Origin())
    assert (outcome.kind, outcome.old_value, outcome.rev) == ("update", None, 1)
    assert time.time() - (await bank.read(ALI)).memories[0].created_at < 60
    await bank.aclose()
