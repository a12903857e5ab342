"""Ledger lines in, spans with OpenTelemetry's names for generative AI out."""

from collections.abc import Mapping

from proxy.ledger.usage import Row, TurnRow
from proxy.observe.trace import Attribute, Span

_FINE = frozenset({"ok", "partial", "cache_hit"})


def call_span(row: Row) -> Span:
    """One round, judgment or call of the memory agent."""
    facts = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": row.provider,
        "gen_ai.request.model": row.model,
        "gen_ai.response.model": row.answered_model,
        "gen_ai.usage.input_tokens": row.prompt_tokens,
        "gen_ai.usage.output_tokens": row.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": row.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": row.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": row.reasoning_tokens,
        "usher.context": row.context,
        "usher.round": row.round,
        "usher.tools.sent": row.tools_sent,
        "usher.cost_nano_usd": row.cost_nano_usd,
    }
    return Span(
        request_id=row.request_id,
        kind="client",
        name=f"chat {row.model}",
        started_at=row.started_at,
        seconds=(row.latency_ms or 0.0) / 1000,
        attributes=_known(facts),
        error=_error(row.outcome),
    )


def turn_span(turn: TurnRow) -> Span:
    """One request of a client, the parent of its calls."""
    facts = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": turn.model,
        "usher.request.id": turn.request_id,
        "usher.tenant": turn.tenant,
        "usher.key": turn.key,
        "usher.tools.kept": turn.kept,
        "usher.tools.deferred": turn.deferred,
        "usher.tools.predicted": turn.predicted,
        "usher.tools.discovered": turn.discovered,
        "usher.tokens_avoided_estimate": turn.tokens_avoided,
    }
    return Span(
        request_id=turn.request_id,
        kind="server",
        name=f"chat {turn.model}",
        started_at=turn.started_at,
        seconds=(turn.duration_ms or 0.0) / 1000,
        attributes=_known(facts),
        error=_error(turn.outcome),
    )


def _known(facts: Mapping[str, Attribute | None]) -> dict[str, Attribute]:
    return {name: value for name, value in facts.items() if value is not None}


def _error(outcome: str) -> str | None:
    return None if outcome in _FINE else outcome
