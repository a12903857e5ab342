"""What a conversation costs with each delivery."""

import pytest

from proxy.demo.catalogue import load_tools
from proxy.demo.costs import compare_costs, make_conversation


def test_the_conversation_has_twelve_turns_and_four_tools() -> None:
    """One conversation: every turn but the first follows the one before."""
    prompts = make_conversation()
    assert len(prompts) == 12
    assert len({prompt.expected for prompt in prompts} - {None}) == 4
    assert [prompt.follows for prompt in prompts] == [False] + [True] * 11


@pytest.mark.slow
def test_the_frozen_delivery_is_the_cheapest() -> None:
    """At most 60 % of sending everything, and never dearer than appending."""
    costs = compare_costs(load_tools())
    off, append, frozen = (costs[name] for name in ("off", "append", "frozen"))
    assert all(bill["right_tools"] for bill in (off, append, frozen))
    assert frozen["cost"] <= 0.6 * off["cost"]
    assert frozen["cost"] <= append["cost"]
