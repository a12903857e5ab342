"""An attempt goes in; its ledger row comes out, with what it cost as far as anybody knows.

Cost in this order: the provider's own figure, the operator's price, the price table, unknown.
Unknown is None and never 0; a cached or local answer really costs 0.
"""

import re
from functools import lru_cache
from typing import Protocol

import msgspec

from proxy.judge.job import Attempt, Purpose
from proxy.judge.questions import Answer, ChoiceAnswer, NoulAnswer, ScoreAnswer
from proxy.ledger.usage import NO_TOKENS, Row, Tokens
from proxy.wire import JSON, JSONObject

JEV = re.compile(r"(?:^|[/~-])jev(?:[-.\d]|$)")
JEV_NANO_USD_PER_TOKEN = 42
"""TypeSafe's price of $0.042 per million input tokens under every name it is served by."""
FREE = frozenset({"cache_hit", "breaker_open", "disabled"})


class Bought(msgspec.Struct, frozen=True):
    """What to price: the tokens of a model, at decision or at chat prices."""

    provider: str
    models: tuple[str, ...]
    tokens: Tokens
    decisions: bool


class Prices(Protocol):
    """The operator's prices and the price table."""

    def cost(self, bought: Bought) -> tuple[int, str] | None:
        """Nano-USD and `operator` or `table`; None when there is no price for it."""


class NoPrices:
    """Knows no price."""

    def cost(self, bought: Bought) -> tuple[int, str] | None:  # noqa: ARG002 - the Protocol's
        """Unknown."""
        return None


def make_row(attempt: Attempt, purpose: Purpose, prices: Prices) -> Row:
    """The ledger's line for an attempt."""
    reading = attempt.reading
    reported = reading.tokens if reading is not None else NO_TOKENS
    tokens, estimated = _tokens(attempt, reported)
    cost, source = _cost(attempt, tokens, prices)
    return Row(
        request_id=purpose.request_id,
        tenant=purpose.tenant,
        key=purpose.key,
        user=purpose.user,
        context=purpose.context,
        round=purpose.round,
        provider=attempt.provider,
        model=attempt.model,
        answered_model=reading.model if reading is not None else None,
        prompt_tokens=tokens.prompt,
        cached_tokens=tokens.cached,
        completion_tokens=tokens.completion,
        reasoning_tokens=tokens.reasoning,
        cost_nano_usd=cost,
        cost_source=source,
        started_at=attempt.started_at,
        latency_ms=attempt.latency_ms,
        tools_sent=None,
        tools_deferred=None,
        tokens_avoided=None,
        outcome=attempt.outcome,
        cache_write_tokens=tokens.cache_write,
        estimated=estimated,
        detail=_detail(attempt, purpose),
    )


def _tokens(attempt: Attempt, reported: Tokens) -> tuple[Tokens, bool]:
    if attempt.local or attempt.outcome in FREE:
        return Tokens(prompt=0, completion=0), False
    if reported.prompt is not None or attempt.estimate is None:
        return reported, False
    return Tokens(prompt=attempt.estimate, cost_nano_usd=reported.cost_nano_usd), True


def _cost(attempt: Attempt, tokens: Tokens, prices: Prices) -> tuple[int | None, str | None]:
    if attempt.local or attempt.outcome in FREE:
        return 0, "none"
    if tokens.cost_nano_usd is not None:
        return tokens.cost_nano_usd, "provider"
    if attempt.reading is None or tokens.prompt is None:
        return None, "unknown"
    answered = attempt.reading.model
    models = (attempt.model,) if answered in {None, attempt.model} else (answered, attempt.model)
    bought = Bought(attempt.provider, tuple(str(m) for m in models), tokens, attempt.decisions)
    known = prices.cost(bought)
    if known is not None:
        return known
    if attempt.decisions and any(map(_is_jev, bought.models)):
        return tokens.prompt * JEV_NANO_USD_PER_TOKEN, "table"
    return None, "unknown"


@lru_cache(maxsize=256)
def _is_jev(model: str) -> bool:
    return JEV.search(model) is not None


def _detail(attempt: Attempt, purpose: Purpose) -> JSONObject:
    """Ids, probabilities and reasons for the timeline; labels, but never anybody's text."""
    detail: JSONObject = {"purpose": purpose.name}
    if attempt.attempt:
        detail["retry"] = attempt.attempt
    if attempt.status is not None:
        detail["status"] = attempt.status
    reading = attempt.reading
    if reading is None:
        return detail
    detail["answers"] = {name: _figures(answer) for name, answer in reading.answers.items()}
    if reading.problems:
        detail["problems"] = dict(reading.problems)
    if reading.provider_request_id is not None:
        detail["provider_request_id"] = reading.provider_request_id
    return detail


def _figures(answer: Answer) -> JSON:
    match answer:
        case NoulAnswer():
            return round(answer.probability, 4)
        case ChoiceAnswer():
            odds = answer.probabilities
            best = sorted(odds, key=odds.__getitem__, reverse=True)[:5]
            return {label: round(odds[label], 4) for label in best} or {answer.label: None}
        case ScoreAnswer():
            return round(answer.score, 4)
    return "refused"
