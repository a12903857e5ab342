"""Statements are built and rows are shaped without a database."""

from decimal import Decimal
from typing import Any

from sqlalchemy.dialects import sqlite

from proxy.ledger import report
from proxy.ledger.schema import calls, turns
from proxy.ledger.store import UsageQuery
from tests.fakes.lines import NOON


def sql(statement: Any) -> str:
    options = {"literal_binds": True}
    compiled = statement.compile(dialect=sqlite.dialect(), compile_kwargs=options)
    return " ".join(str(compiled).split())


def test_usage_of_a_tenant_since_a_time() -> None:
    """Both filters are there, and the groups."""
    text = sql(report.select_usage(UsageQuery(("model", "day"), "acme", NOON)))
    assert "WHERE usher_calls.tenant = 'acme' AND usher_calls.started_at >= " in text
    assert "GROUP BY usher_calls.model, usher_calls.day" in text


def test_savings_leave_out_what_turns_do_not_have() -> None:
    """A turn has no context; grouping by it groups by the rest."""
    text = sql(report.select_savings(UsageQuery(("context", "model"), None, None)))
    assert "GROUP BY usher_turns.model ORDER" in text


def test_every_question_about_lines_names_the_tenant() -> None:
    """Nobody reads another tenant's request by guessing its id."""
    for table in (calls, turns):
        assert ".tenant = 'acme'" in sql(report.select_request(table, "req_1", "acme"))
    assert ".tenant = 'acme'" in sql(report.select_requests("acme", 10, NOON))
    assert ".tenant = " not in sql(report.select_requests(None, 10, None))


def test_totals_are_whole_numbers_and_dates() -> None:
    """PostgreSQL sums to decimals; days are stored as numbers; unknown stays unknown."""
    shaped = report.shape_totals({"day": 20833, "model": "m", "n": Decimal(3), "cost": None})
    assert shaped == {"day": "2027-01-15", "model": "m", "n": 3, "cost": None}


def test_no_lines_no_timeline() -> None:
    """An unknown id has no timeline."""
    assert report.shape_timeline([], []) is None
