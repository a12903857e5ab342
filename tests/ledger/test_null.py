"""A ledger that is off can be used like any other."""

import pytest

from proxy.ledger.null import NullLedger
from proxy.ledger.store import Health, Ledger, UsageQuery
from tests.fakes.lines import row, turn

pytestmark = pytest.mark.anyio


async def test_it_takes_everything_and_keeps_nothing() -> None:
    """No caller needs to know that it is off."""
    ledger: Ledger = NullLedger()
    await ledger.start()
    ledger.record(row())
    ledger.record_turn(turn())
    assert await ledger.usage(UsageQuery()) == []
    assert await ledger.savings(UsageQuery()) == []
    assert await ledger.requests(None) == []
    assert await ledger.timeline("req_1", None) is None
    assert list(await ledger.spent(0.0)) == []
    assert ledger.health == Health()
    await ledger.aclose()
