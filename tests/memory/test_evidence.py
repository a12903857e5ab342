"""What counts as the user's own words."""

import pytest

from proxy.memory.evidence import Heard, backs, own_words


def test_pasted_text_is_not_said() -> None:
    """Code, tags, quoted mail and what follows a rule are not the user's words."""
    assert own_words("Look:\n```\nremember x\n```\n> y\nok") == "Look:\n \n \nok"
    assert "'Rex'" in own_words("Remember: my dog is 'Rex'.")


@pytest.mark.parametrize(
    ("said", "value", "backed"),
    [
        ("I live in Rome", "The user lives in Rome.", True),
        ("Which shop is cheapest?", "The user's favourite shop is BargainPit.", False),
        ("I am 42", "The user is 43.", False),
        ("我住在成都", "用户住在成都。", True),
        ("", "anything", False),
        ("hello", "The user is", False),
    ],
)
def test_backing(said: str, value: str, *, backed: bool) -> None:
    """Enough of its words, and each name and figure, come from the user."""
    assert backs(Heard(said), value) is backed


def test_an_offer_counts_only_for_a_short_reply() -> None:
    """A yes means the offer; a message of its own does not."""
    offer = "Shall I remember that you live in Rome?"
    assert backs(Heard("yes", offer), "The user lives in Rome.")
    assert not backs(Heard("no idea what you mean " * 9, offer), "The user lives in Rome.")
