"""Usage objects of every provider become the same numbers."""

import pytest

from proxy.ledger.usage import NO_TOKENS, Tokens, nano_usd, read_usage
from proxy.wire import JSON


def test_chat_completions_with_all_details() -> None:
    """Each detail of a chat completion's usage is read."""
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 200,
        "total_tokens": 1200,
        "prompt_tokens_details": {"cached_tokens": 400, "cache_write_tokens": 100},
        "completion_tokens_details": {"reasoning_tokens": 50},
    }
    assert read_usage(usage) == Tokens(1000, 400, 100, 200, 50)


def test_responses_names() -> None:
    """The responses API calls the same things input and output."""
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    assert read_usage(usage) == Tokens(prompt=10, cached=4, completion=3, reasoning=0)


def test_messages_count_cached_tokens_apart() -> None:
    """Anthropic's input tokens leave the cached ones out; the prompt has them in."""
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens": 3,
    }
    assert read_usage(usage) == Tokens(prompt=130, cached=100, cache_write=20, completion=3)


def test_prompt_tokens_already_hold_the_cached_ones() -> None:
    """A translated usage with both names is not counted twice."""
    usage = {"prompt_tokens": 130, "completion_tokens": 3, "cache_read_input_tokens": 100}
    assert read_usage(usage) == Tokens(prompt=130, cached=100, completion=3)


def test_absent_is_unknown_and_zero_is_zero() -> None:
    """Embeddings state no completion tokens, and that is not 0."""
    assert read_usage({"prompt_tokens": 8, "total_tokens": 8}) == Tokens(prompt=8)
    assert read_usage({"prompt_tokens": 8, "completion_tokens": 0}).completion == 0


@pytest.mark.parametrize("usage", [None, [], "7", 7, {}, {"prompt_tokens": None}])
def test_no_usage(usage: JSON) -> None:
    """What is no usage object says nothing."""
    assert read_usage(usage) == NO_TOKENS


@pytest.mark.parametrize("broken", [-1, True, "12", 1.5, float("nan"), 10**13, 2**64, [], {}])
def test_a_broken_number_is_unknown_and_the_others_count(broken: JSON) -> None:
    """One bad field costs only itself."""
    usage = {"prompt_tokens": broken, "completion_tokens": 5, "prompt_tokens_details": broken}
    assert read_usage(usage) == Tokens(completion=5)


def test_whole_floats_count() -> None:
    """Some servers write 12.0 for 12."""
    assert read_usage({"prompt_tokens": 12.0}).prompt == 12


def test_cost_as_openrouter_reports_it() -> None:
    """`usage.cost` is in USD."""
    assert read_usage({"cost": 0.00004788}).cost_nano_usd == 47_880


def test_cost_with_a_key_of_the_caller() -> None:
    """With a key of the caller's own, the provider's bill comes on top of the router's fee."""
    usage = {
        "cost": 0.001,
        "is_byok": True,
        "cost_details": {"upstream_inference_cost": 0.02},
    }
    assert read_usage(usage).cost_nano_usd == 21_000_000
    assert read_usage({"cost": 0.001, "is_byok": True}).cost_nano_usd is None


def test_cost_as_perplexity_reports_it() -> None:
    """The total is one level down."""
    assert read_usage({"cost": {"total_cost": 0.005}}).cost_nano_usd == 5_000_000


@pytest.mark.parametrize("usd", [None, True, "x", -1, float("inf"), 1e300, [], "nan"])
def test_no_price(usd: JSON) -> None:
    """What is no amount of money is unknown."""
    assert nano_usd(usd) is None


def test_price_as_text() -> None:
    """Decimal text is exact to the nano-USD."""
    assert nano_usd("0.000000001") == 1
