"""Token counts agree with o200k_base and never need the network."""

from proxy.tools.tokens import count_tokens, estimate_tokens


def test_counts_with_the_bundled_vocabulary() -> None:
    """A known text has its known number of o200k_base tokens."""
    assert count_tokens("hello world") == 2
    assert count_tokens("") == 0


def test_special_tokens_are_plain_text() -> None:
    """A control token inside a description is counted as text, not refused."""
    assert count_tokens("<|endoftext|>") > 1


def test_estimate_rounds_up() -> None:
    """An estimate is a whole number of tokens and zero only for nothing."""
    assert estimate_tokens(0) == 0
    assert estimate_tokens(1) == 1
    assert estimate_tokens(553_289) == 115_269
