"""What goes wrong is counted each time and reported once."""

from proxy.ledger.status import Options, Status
from tests.fakes.lines import row


def test_the_same_failure_is_news_once() -> None:
    """A disk that is full for an hour is one line of log, and a growing count."""
    status = Status()
    assert status.failed("disk is full")
    assert not status.failed("disk is full")
    assert status.failed("locked")
    assert status.recovered()
    assert not status.recovered()
    assert status.degraded is None
    assert status.failed("locked")
    assert status.failures == 4


def test_rows_keep_their_price_by_default() -> None:
    """Without prices nothing is invented."""
    assert Options().price(row()) == row()
