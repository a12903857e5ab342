"""Whose price counts: the operator's, the provider's own figure, the table's, or nobody's."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import orjson
import pytest

from proxy.ledger.prices import Prices, find_standins, operator_rates
from proxy.ledger.pricetable import PriceTable
from proxy.ledger.usage import Tokens
from proxy.settings import Price, Settings
from proxy.wire import JSONObject
from tests.fakes.lines import row

TABLE: dict[str, dict[str, Any]] = {
    "gpt-4o": {
        "mode": "chat",
        "input_cost_per_token": 2.5e-06,
        "output_cost_per_token": 1e-05,
        "cache_read_input_token_cost": 1.25e-06,
        "output_cost_per_token_decisions": 0.0,
        "input_cost_per_token_flex": 1e-06,
        "max_input_tokens": 128_000,
    },
    "azure/gpt-4o": {
        "mode": "chat",
        "input_cost_per_token": 3e-06,
        "output_cost_per_token": 1e-05,
    },
}


def load() -> PriceTable:
    return PriceTable({name: msgspec.Raw(orjson.dumps(row)) for name, row in TABLE.items()})


def prices(*operator: Price) -> Prices:
    made = Prices(operator, load)
    made.load()
    return made


def test_the_table_knows_the_asked_model_when_it_does_not_know_the_answering_one() -> None:
    """gpt-4o-2024-08-06 is not in this table, gpt-4o is."""
    found = prices().price(row())
    expected = 600 * 2500 + 400 * 1250 + 200 * 10_000
    assert (found.cost_nano_usd, found.cost_source) == (expected, "table")


def test_the_provider_decides_first_on_the_name() -> None:
    """The same model costs something else elsewhere."""
    found = prices().price(row(provider="azure"))
    assert found.cost_nano_usd == 1000 * 3000 + 200 * 10_000


def test_the_operators_price_wins() -> None:
    """Over the provider's figure and over the table; names may be globs."""
    operator = prices(Price(model="gpt-*", input=1.0, output=2.0, cached=0.5))
    found = operator.price(row(cost_nano_usd=7))
    expected = 600 * 1000 + 400 * 500 + 200 * 2000
    assert (found.cost_nano_usd, found.cost_source) == (expected, "operator")


def test_a_free_model_of_the_operator() -> None:
    """Free is a price: 0, not unknown."""
    operator = prices(Price(model="local", input=0.0))
    found = operator.price(row(model="local", answered_model=None))
    assert (found.cost_nano_usd, found.cost_source) == (0, "operator")


def test_the_providers_figure_beats_the_table() -> None:
    """OpenRouter knows what it bills."""
    found = prices().price(row(cost_nano_usd=7))
    assert (found.cost_nano_usd, found.cost_source) == (7, "provider")


def test_the_stand_in_costs_nothing_whatever_it_is_called() -> None:
    """Nobody is billed for gpt-4o when the embedded model answered; an operator's price counts."""
    found = prices().price(row(provider="standin"))
    assert (found.cost_nano_usd, found.cost_source) == (0, "standin")
    priced = prices(Price(model="gpt-*", input=1.0)).price(row(provider="standin"))
    assert (priced.cost_nano_usd, priced.cost_source) == (1_000_000, "operator")


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({}, {"standin"}),
        ({"upstream": {"base_url": "http://a.test/v1"}}, set()),
        ({"providers": [{"name": "toy", "kind": "standin", "models": ["x"]}]}, {"standin", "toy"}),
    ],
)
def test_stand_ins_go_by_their_kind(values: JSONObject, names: set[str]) -> None:
    """A provider may have any name."""
    assert set(find_standins(Settings.model_validate(values))) == names


def test_a_model_without_a_price_is_unknown() -> None:
    """Unknown is None, never 0."""
    found = prices().price(row(model="m", answered_model=None))
    assert (found.cost_nano_usd, found.cost_source) == (None, "unknown")


def test_estimated_tokens_have_no_price() -> None:
    """A guess times a price would look like a bill."""
    found = prices(Price(model="*", input=1.0)).price(row(estimated=True))
    assert (found.cost_nano_usd, found.cost_source) == (None, "unknown")


def test_a_row_that_is_priced_already_stays() -> None:
    """A judgment out of the cache really cost 0."""
    priced = row(cost_nano_usd=0, cost_source="none")
    assert prices(Price(model="*", input=1.0)).price(priced) is priced


def test_the_tier_counts() -> None:
    """Flex is cheaper."""
    found = prices().price(row(service_tier="flex"))
    assert found.cost_nano_usd == 600 * 1000 + 400 * 1250 + 200 * 10_000


def test_before_the_table_is_read() -> None:
    """The row keeps no source, and the writer's thread tries again."""
    early = Prices((), load)
    assert early.price(row()) == row()
    early.load()
    assert early.loaded
    assert early.price(row()).cost_source == "table"


@dataclass(frozen=True, slots=True)
class Bought:
    models: tuple[str, ...] = ("gpt-4o",)
    tokens: Tokens = field(default_factory=lambda: Tokens(prompt=1000, completion=10))
    provider: str = "openai"
    decisions: bool = False


@pytest.mark.parametrize(
    ("bought", "cost"),
    [
        (Bought(), (1000 * 2500 + 10 * 10_000, "table")),
        (Bought(decisions=True), (1000 * 2500, "table")),
        (Bought(("nobody", "gpt-4o")), (1000 * 2500 + 10 * 10_000, "table")),
        (Bought(("house",)), (1000 * 1000, "operator")),
        (Bought(("nobody",)), None),
    ],
)
def test_judgments_ask_for_a_price(bought: Bought, cost: tuple[int, str] | None) -> None:
    """On decision routes the decision prices count."""
    assert prices(Price(model="house", input=1.0)).cost(bought) == cost


def test_operators_units() -> None:
    """USD per million tokens, and USD per request."""
    found = operator_rates(Price(model="m", input=2.5, output=10.0, reasoning=12.0, request=0.001))
    assert (found.input, found.cached, found.cache_write) == (2_500_000_000,) * 3
    assert (found.output, found.reasoning) == (10_000_000_000, 12_000_000_000)
    assert found.request == 1_000_000


def test_many_model_names_do_not_fill_the_memory() -> None:
    """Names come from clients."""
    operator = prices(Price(model="a*", input=1.0))
    for number in range(5000):
        operator.price(row(model=f"m{number}"))
    assert operator.price(row(model="abc")).cost_source == "operator"


def test_the_window_of_a_model() -> None:
    """Under the provider's name first; unknown is None, also while the table is not read."""
    table = prices()
    assert table.window("azure", "gpt-4o") == 128_000
    assert table.window("openai", "gpt-4o") == 128_000
    assert table.window("openai", "other") is None
    assert table.window("openai", "") is None
    assert Prices((), load).window("openai", "gpt-4o") is None
