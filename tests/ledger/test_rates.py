"""Token counts times rates are whole nano-USD."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.ledger.rates import Rates
from proxy.ledger.usage import Tokens

RATES = Rates(
    input=2_500_000_000, output=10_000_000_000, cached=1_250_000_000, cache_write=3_125_000_000,
    reasoning=10_000_000_000,
)  # fmt: skip
"""gpt-4o: 2.50, 10.00 and 1.25 USD per million."""


def test_each_kind_of_token_at_its_rate() -> None:
    """1000 prompt tokens, 400 of them cached and 100 written, and 200 completion tokens."""
    tokens = Tokens(prompt=1000, cached=400, cache_write=100, completion=200, reasoning=50)
    assert RATES.cost(tokens) == 500 * 2500 + 400 * 1250 + 100 * 3125 + 200 * 10_000


def test_unknown_count_with_a_price_is_an_unknown_cost() -> None:
    """Half a bill is no bill."""
    assert RATES.cost(Tokens(prompt=1000)) is None
    assert RATES.cost(Tokens(completion=5)) is None


def test_unknown_count_without_a_price_is_free() -> None:
    """Embeddings have no completion tokens and no price for them."""
    assert Rates(20_000_000, 0, 20_000_000, 20_000_000, 0).cost(Tokens(prompt=100)) == 2000


def test_price_per_request() -> None:
    """Some decision routes bill each request."""
    assert Rates(0, 0, 0, 0, 0, request=5_000_000).cost(Tokens()) == 5_000_000


@given(
    prompt=st.integers(0, 10**7), cached=st.integers(0, 10**7), written=st.integers(0, 10**7),
    completion=st.integers(0, 10**6), reasoning=st.integers(0, 10**6),
)  # fmt: skip
def test_parts_never_exceed_the_whole(
    prompt: int, cached: int, written: int, completion: int, reasoning: int
) -> None:
    """Contradicting counts never make a call cheaper than nothing or dearer than all."""
    cost = RATES.cost(Tokens(prompt, cached, written, completion, reasoning))
    assert cost is not None
    assert 0 <= cost <= prompt * 3125 + completion * 10_000
