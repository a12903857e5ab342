"""What a judgment costs, and what the ledger says about it."""

import json
import math
import os
import subprocess
import sys

import pytest

from proxy.judge.books import Bought, NoPrices, Prices, make_row
from proxy.judge.job import Attempt, Purpose
from proxy.judge.questions import Answer, ChoiceAnswer, NoulAnswer, Refused, ScoreAnswer
from proxy.judge.reading import Reading
from proxy.ledger.prices import Prices as TablePrices
from proxy.ledger.usage import Row, Tokens
from proxy.settings import Price

PURPOSE = Purpose("memory_gate", request_id="r", tenant="t", key="k", user="u")
ANSWERS: dict[str, Answer] = {"spam": NoulAnswer(0.09)}


def row(
    reading: Reading | None = None,
    *,
    model: str = "jev-latest",
    provider: str = "typesafe",
    outcome: str = "ok",
    prices: Prices | None = None,
    decisions: bool = True,
    estimate: int | None = None,
    local: bool = False,
) -> Row:
    attempt = Attempt(
        provider,
        model,
        outcome,
        1.0,
        400.0,
        reading,
        estimate=estimate,
        decisions=decisions,
        local=local,
    )
    return make_row(attempt, PURPOSE, prices or NoPrices())


def used(prompt: int | None, completion: int | None = 0, cost: int | None = None) -> Reading:
    return Reading(ANSWERS, tokens=Tokens(prompt=prompt, completion=completion, cost_nano_usd=cost))


def table() -> TablePrices:
    prices = TablePrices()
    prices.load()
    return prices


def test_the_seeds_accounting_example() -> None:
    """1,140 input tokens of jev-latest cost 47.88 micro-USD; the output is free."""
    for prices in (NoPrices(), table()):
        found = row(used(1_140, 58), prices=prices)
        assert (found.cost_nano_usd, found.cost_source) == (47_880, "table")


@pytest.mark.parametrize(
    "model",
    [
        "jev-latest",
        "jev-preview",
        "jev-1.14.0",
        "typesafe/jev",
        "~typesafe/jev-latest",
        "openrouter/typesafe/jev-1.13",
    ],
)
def test_jev_costs_the_same_under_every_name(model: str) -> None:
    """$0.042 per million input tokens, also under names that no table lists."""
    assert row(used(1_000_000, 9), model=model).cost_nano_usd == 42_000_000


def test_other_models_are_no_jev() -> None:
    """A name that only contains the letters is unknown, and unknown is not 0."""
    for model in ("jevons", "open-jevil", "clef"):
        found = row(used(10), model=model)
        assert (found.cost_nano_usd, found.cost_source) == (None, "unknown")


def test_providers_figure_wins_over_the_operators_and_the_table() -> None:
    """OpenRouter says what it billed."""
    prices = TablePrices([Price(model="jev-*", input=1.0, output=1.0)])
    assert row(used(1_140, 0, 46_000), prices=prices).cost_nano_usd == 46_000
    found = row(used(1_000), prices=prices)
    assert (found.cost_nano_usd, found.cost_source) == (1_000_000, "operator")


def test_decision_routes_have_prices_of_their_own() -> None:
    """gpt-6-luna's output is free on decisions and not on chat."""
    prices = table()
    costs = [
        row(
            used(1_000, 1_000),
            model="gpt-6-luna",
            provider="openai",
            prices=prices,
            decisions=decisions,
        ).cost_nano_usd
        for decisions in (True, False)
    ]
    assert costs == [100_000, 600_000]


def test_the_model_that_answered_is_priced_first() -> None:
    """An alias moves; the reply names the version."""
    seen: list[Bought] = []

    class Spy:
        def cost(self, bought: Bought) -> tuple[int, str] | None:
            seen.append(bought)
            return 7, "table"

    reading = Reading(ANSWERS, model="jev-1.14.0", tokens=Tokens(prompt=1))
    assert row(reading, prices=Spy()).answered_model == "jev-1.14.0"
    assert seen[0].models == ("jev-1.14.0", "jev-latest")


def test_an_attempt_that_was_cut_off_is_an_estimate_without_a_cost() -> None:
    """The provider may bill it; nobody knows how much."""
    found = row(outcome="timeout", estimate=312)
    assert (found.prompt_tokens, found.estimated) == (312, True)
    assert (found.cost_nano_usd, found.cost_source) == (None, "unknown")


def test_missing_usage_is_not_zero() -> None:
    """A reply without usage is estimated, one that was refused has none."""
    assert row(used(None), estimate=300).prompt_tokens == 300
    refused = row(outcome="unauthorized")
    assert (refused.prompt_tokens, refused.completion_tokens) == (None, None)


@pytest.mark.parametrize(
    ("outcome", "local"), [("cache_hit", False), ("breaker_open", False), ("ok", True)]
)
def test_what_needs_no_request_really_costs_nothing(outcome: str, *, local: bool) -> None:
    """Kept answers, open breakers and built-in judges: 0 tokens, 0 USD."""
    found = row(used(900), outcome=outcome, local=local)
    assert (found.prompt_tokens, found.cost_nano_usd, found.estimated) == (0, 0, False)


def test_the_row_names_who_why_and_how_sure() -> None:
    """And holds numbers and labels only."""
    answers: dict[str, Answer] = {
        "spam": NoulAnswer(0.09123456),
        "tool": ChoiceAnswer("a", {"a": 0.9, "b": 0.1}),
        "bare": ChoiceAnswer("a"),
        "much": ScoreAnswer(1.25),
        "no": Refused(),
    }
    reading = Reading(answers, {"bad": "a number is missing"}, provider_request_id="p")
    found = row(reading)
    assert (found.request_id, found.tenant, found.key, found.user) == ("r", "t", "k", "u")
    assert (found.context, found.latency_ms, found.outcome) == ("classification", 400.0, "ok")
    assert found.detail == {
        "purpose": "memory_gate",
        "answers": {
            "spam": 0.0912,
            "tool": {"a": 0.9, "b": 0.1},
            "bare": {"a": None},
            "much": 1.25,
            "no": "refused",
        },
        "problems": {"bad": "a number is missing"},
        "provider_request_id": "p",
    }
    attempt = Attempt("p", "m", "server_error", 0.0, 1.0, status=503, attempt=1)
    retried = make_row(attempt, PURPOSE, NoPrices())
    assert retried.detail == {"purpose": "memory_gate", "retry": 1, "status": 503}


LITELLM_COSTS = """
import json, litellm
found = {}
for name, listed in litellm.model_cost.items():
    provider, mode = listed.get("litellm_provider"), listed.get("mode")
    decisions = mode in ("evaluation", "decisions") or name == "gpt-6-luna"
    plain = mode == "chat" and provider in ("openai", "anthropic", "mistral")
    if not decisions and not plain or "input_cost_per_token" not in listed:
        continue
    kind = {"call_type": "decisions"} if decisions else {}
    cost = litellm.cost_per_token(
        model=name, custom_llm_provider=provider, prompt_tokens=1140, completion_tokens=58, **kind
    )
    found[name] = (provider, decisions, sum(cost))
print("COSTS", json.dumps(found))
"""


@pytest.mark.slow
def test_costs_agree_with_litellm() -> None:
    """All its decision models and many chat models: our nano-USD are its USD."""
    environ = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    child = subprocess.run(
        [sys.executable, "-c", LITELLM_COSTS],
        capture_output=True,
        check=True,
        text=True,
        env=environ,
        timeout=120,
    )
    line = next(line for line in child.stdout.splitlines() if line.startswith("COSTS "))
    found = json.loads(line.removeprefix("COSTS "))
    prices, tokens = table(), Tokens(prompt=1_140, completion=58)
    for name, (provider, decisions, cost) in found.items():
        ours = prices.cost(Bought(provider, (name,), tokens, decisions))
        assert ours is not None, name
        assert math.isclose(ours[0], cost * 1e9, abs_tol=1.0), name
    assert sum(decisions for _, decisions, _ in found.values()) >= 35
    assert len(found) >= 50
