"""The seam that turns, judges and admin pages see."""

from typing import get_args

from proxy.ledger.schema import calls
from proxy.ledger.store import Dimension, UsageQuery


def test_every_dimension_is_a_column() -> None:
    """What can be asked for by name can be grouped by."""
    assert set(get_args(Dimension)) <= {column.name for column in calls.columns}


def test_the_usual_question() -> None:
    """By model and context, of everybody, for all time."""
    assert UsageQuery() == UsageQuery(("model", "context"), None, None)
