"""The seam between the writer and its database."""

from proxy.ledger.backend import Failure, Refused


def test_a_refusal_is_a_failure() -> None:
    """Who waits for a database to come back also waits for one that says no."""
    assert issubclass(Refused, Failure)
