"""How found schemas reach a model."""

import pytest

from proxy.settings import Deferral
from proxy.tools.delivery import choose_delivery, speculates, takes_breakpoint
from tests.tools.samples import catalogue, city_tools, function

_SMALL = catalogue(*city_tools())
_LARGE = catalogue(function("f", "x" * 200_000))


@pytest.mark.parametrize("delivery", ["append", "frozen"])
def test_the_operators_word_counts(delivery: str) -> None:
    """A fixed delivery is for every model."""
    settings = Deferral.model_validate({"delivery": delivery})
    assert choose_delivery(settings, "deepseek-chat", _SMALL) == delivery


@pytest.mark.item("reported/model-families")
def test_auto_knows_families_of_models() -> None:
    """Some keep their cache when tools change, some need every tool declared."""
    settings = Deferral(delivery="auto", frozen_models=("gpt-*",))
    assert choose_delivery(settings, "DeepSeek-V4", _SMALL) == "append"
    assert choose_delivery(settings, "gemini-3-pro", _SMALL) == "append"
    assert choose_delivery(settings, "gpt-6", _LARGE) == "frozen"


def test_auto_does_the_sums_for_others() -> None:
    """A late find is cheaper in the history, unless its schemas are enormous."""
    settings = Deferral(delivery="auto")
    assert choose_delivery(settings, "some-model", _SMALL) == "frozen"
    assert choose_delivery(settings, "some-model", _LARGE) == "append"


def test_signing_models_are_not_spoken_for() -> None:
    """Their reasoning before a call cannot be made up."""
    assert speculates(Deferral(), "gpt-6")
    assert not speculates(Deferral(), "x/gemini-3-flash")


def test_the_clients_own_marks_come_first() -> None:
    """A fifth mark would be refused, so ours is only put where there is room."""
    settings = Deferral.model_validate({"cache_models": ["*claude*"]})
    mark = b'{"cache_control":{"type":"ephemeral"}}'
    assert takes_breakpoint(settings, "Anthropic/Claude-5", mark * 3)
    assert not takes_breakpoint(settings, "claude-5", mark * 4)
    assert not takes_breakpoint(settings, "gpt-9", b"")
    assert not takes_breakpoint(Deferral(), "claude-5", b"")
