"""Settings of triage: what is off by default, and where its marks are."""

import pytest
from pydantic import ValidationError

from proxy.triage_settings import Limits, Triage


def test_it_is_off_by_default() -> None:
    """As is the cap on tool results."""
    assert Triage().mode == "off"
    assert Limits().max_tool_result_chars is None


def test_the_budget_never_exceeds_its_share_of_the_window() -> None:
    """Without a window the budget counts, and nothing is ever forced."""
    assert Triage().high_water == 60_000
    assert Triage().force_water == float("inf")
    small = Triage(window_tokens=32_000)
    assert small.high_water == pytest.approx(19_200)
    assert small.force_water == pytest.approx(27_200)


def test_an_unknown_key_is_an_error() -> None:
    """A typing mistake must not leave triage half configured."""
    with pytest.raises(ValidationError):
        Triage.model_validate({"budget": 5})
