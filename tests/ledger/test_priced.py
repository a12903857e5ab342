"""The ledger that the application gets: priced, heard by listeners, on or off."""

import os
from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.ledger.priced import Listeners, make_ledger
from proxy.ledger.prices import Prices
from proxy.ledger.store import UsageQuery
from proxy.ledger.usage import Row, TurnRow
from proxy.settings import Ledger as LedgerSettings
from proxy.settings import Price
from tests.fakes.lines import row, turn

pytestmark = pytest.mark.anyio

PRICES = Prices((Price(model="*", input=1.0, output=1.0),))


async def test_rows_are_priced_told_and_kept(tmp_path: Path) -> None:
    """Budgets and metrics hear of the cost at once, the books have it."""
    heard: list[Row] = []
    turns: list[TurnRow] = []
    listeners = Listeners((heard.append,), (turns.append,))
    ledger = make_ledger(LedgerSettings(), tmp_path, PRICES, listeners)
    await ledger.start()
    ledger.record(row())
    ledger.record_turn(turn())
    assert heard[0].cost_nano_usd == 1_200_000
    assert turns == [turn()]
    (total,) = await ledger.usage(UsageQuery(()))
    assert total["cost_nano_usd"] == 1_200_000
    assert (await ledger.savings(UsageQuery(())))[0]["turns"] == 1
    assert len(await ledger.requests("acme")) == 1
    assert await ledger.timeline("req_1", "acme") is not None
    assert await ledger.spent(0.0) == [("alice", 20833, 1_200_000)]
    await ledger.aclose()
    assert ledger.health.written == 2
    assert os.listdir(tmp_path) == ["usher.db"]  # noqa: PTH208 - as below


async def test_off_means_no_file_but_budgets_still_hear(tmp_path: Path) -> None:
    """Turning the books off does not turn the limits off."""
    heard: list[Row] = []
    ledger = make_ledger(
        LedgerSettings(enabled=False), tmp_path, PRICES, Listeners((heard.append,))
    )
    await ledger.start()
    ledger.record(row())
    await ledger.aclose()
    assert heard[0].cost_source == "operator"
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - pathlib's is refused in a coroutine


async def test_another_kind_of_database(tmp_path: Path) -> None:
    """Refused before anything is opened."""
    with pytest.raises(ConfigError, match=r"ledger\.url"):
        make_ledger(LedgerSettings(url="mysql://h/d"), tmp_path, PRICES)
