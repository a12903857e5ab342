"""Rows of litellm's table become rates."""

import os
import subprocess
import sys
from typing import Any

import msgspec
import orjson
import pytest

from proxy.ledger.pricetable import Asked, PriceTable, load_table, read_rates
from proxy.ledger.rates import Rates
from proxy.ledger.usage import Tokens

CHAT: dict[str, Any] = {
    "mode": "chat",
    "litellm_provider": "openai",
    "input_cost_per_token": 2e-06,
    "output_cost_per_token": 8e-06,
    "cache_read_input_token_cost": 5e-07,
}


def rates(row: dict[str, Any], **asked: Any) -> Rates:
    found = read_rates(row, Asked(**asked))
    assert found is not None
    return found


def test_missing_cache_and_reasoning_prices_are_the_plain_ones() -> None:
    """Who publishes no price for cached or reasoning tokens bills them as others."""
    found = rates(CHAT)
    assert found.cached == 500_000_000
    assert found.cache_write == found.input == 2_000_000_000
    assert found.reasoning == found.output == 8_000_000_000


def test_tiers() -> None:
    """A tier has prices of its own where the row names them."""
    row = CHAT | {"input_cost_per_token_flex": 1e-06, "input_cost_per_token_batches": 1e-06}
    assert rates(row, tier="flex").input == 1_000_000_000
    assert rates(row, tier="batch").input == 1_000_000_000
    assert rates(row, tier="priority").input == 2_000_000_000
    assert rates(row, tier="default").input == 2_000_000_000


def test_a_long_prompt_has_its_own_price() -> None:
    """Over the threshold all tokens cost more, at the threshold they do not."""
    row = CHAT | {
        "input_cost_per_token_above_200k_tokens": 4e-06,
        "input_cost_per_token_above_200k_tokens_priority": 6e-06,
        "output_cost_per_token_above_200k_tokens": 1.2e-05,
    }
    assert rates(row, prompt_tokens=200_000).input == 2_000_000_000
    assert rates(row, prompt_tokens=200_001).input == 4_000_000_000
    assert rates(row, prompt_tokens=200_001, tier="priority").input == 6_000_000_000
    assert rates(row | {"litellm_provider": "xai"}, prompt_tokens=200_000).input == 4_000_000_000


def test_ranges() -> None:
    """A list of ranges prices the whole prompt by the range it falls in."""
    row = {
        "mode": "chat",
        "tiered_pricing": [
            {"range": [0, 1000], "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06},
            {"range": [1000, 9000], "input_cost_per_token": 3e-06, "output_cost_per_token": 4e-06},
        ],
    }
    assert rates(row, prompt_tokens=1000).input == 1_000_000_000
    assert rates(row, prompt_tokens=1001).input == 3_000_000_000
    assert rates(row, prompt_tokens=99_999).output == 4_000_000_000


def test_decision_routes_use_their_fields() -> None:
    """The same model answers decisions at another price."""
    row = CHAT | {"output_cost_per_token_decisions": 0.0}
    assert rates(row, decisions=True).output == 0
    assert rates(row).output == 8_000_000_000
    query = {"mode": "decisions", "input_cost_per_query": 0.001}
    assert rates(query, decisions=True).request == 1_000_000


def test_a_tiers_output_price_covers_its_reasoning() -> None:
    """Only a tier without an output price falls back to the reasoning price."""
    row = CHAT | {"output_cost_per_reasoning_token": 9e-06}
    assert rates(row).reasoning == 9_000_000_000
    assert rates(row, tier="flex").reasoning == 9_000_000_000
    with_flex = row | {"output_cost_per_token_flex": 4e-06}
    assert rates(with_flex, tier="flex").reasoning == 4_000_000_000


@pytest.mark.parametrize(
    "row",
    [
        {"mode": "image_generation", "output_cost_per_image": 0.04},
        {"mode": "chat", "input_cost_per_token": 1e-06},
        CHAT | {"off_peak_pricing": {}},
        {},
    ],
)
def test_what_has_no_price_per_token_is_unknown(row: dict[str, Any]) -> None:
    """Images, half a price, and a price by the time of day are no price per token."""
    assert read_rates(row, Asked()) is None


def test_names() -> None:
    """A row may be another name of a row; an unknown or broken one is unknown."""
    table = PriceTable(
        {
            name: msgspec.Raw(orjson.dumps(row))
            for name, row in {"a": CHAT, "b": {"alias_of": "a"}, "c": 7}.items()
        }
    )
    assert table.rates("b", Asked()) == table.rates("a", Asked())
    assert table.rates("c", Asked()) is None
    assert table.rates("d", Asked()) is None


def test_the_bundled_table_is_read_without_importing_litellm() -> None:
    """The file is data: 4,000 models, and no module of litellm."""
    script = (
        "import sys; from proxy.ledger.pricetable import Asked, load_table; "
        "assert load_table().rates('gpt-4o', Asked()); assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_without_litellm_nothing_has_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing table costs prices, not answers."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert load_table().rates("gpt-4o", Asked()) is None


LITELLM = """
import sys, litellm, orjson
from litellm.types.utils import Usage
bills = []
for model, row in sorted(litellm.model_cost.items())[::17]:
    if row.get("mode") not in {"chat", "embedding"} or row["litellm_provider"] == "perplexity":
        continue
    for prompt, cached, completion, tier in orjson.loads(sys.argv[1]):
        usage = Usage(
            prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion,
            prompt_tokens_details={"cached_tokens": cached},
        )
        try:
            cost = litellm.cost_per_token(
                model=model, custom_llm_provider=row["litellm_provider"], usage_object=usage,
                prompt_tokens=prompt, completion_tokens=completion, service_tier=tier,
            )
        except Exception:
            continue
        bills.append((model, prompt, cached, completion, tier, round(sum(cost) * 1e9)))
sys.stdout.buffer.write(b"BILLS" + orjson.dumps(bills))
"""


@pytest.mark.slow
def test_agrees_with_litellms_own_arithmetic() -> None:
    """A sample of the table, in three sizes and tiers: the same bill to the nano-USD."""
    sizes = [(1000, 400, 200, None), (300_000, 1000, 500, None), (1000, 0, 200, "flex")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LITELLM, orjson.dumps(sizes).decode()],
        env=os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        check=True,
        timeout=120,
    )
    table = load_table()
    compared, wrong = set(), []
    for model, prompt, cached, completion, tier, theirs in orjson.loads(
        done.stdout.partition(b"BILLS")[2]
    ):
        found = table.rates(model, Asked(prompt, tier))
        ours = None if found is None else found.cost(Tokens(prompt, cached, 0, completion))
        if ours is None:
            continue  # unknown is allowed, wrong is not
        compared.add(model)
        if abs(ours - theirs) > 1:
            wrong.append((model, prompt, tier, ours, theirs))
    assert not wrong
    assert len(compared) >= 150
