"""Ledger lines for tests: everything filled in, and whatever a test cares about on top."""

from typing import Any

import msgspec

from proxy.ledger.usage import Row, TurnRow

NOON = 1_800_000_000.0
"""A moment on day 20833 since 1970."""

_ROW = Row(
    request_id="req_1",
    tenant="acme",
    key="alice",
    user="u1",
    context="main",
    round=1,
    provider="openai",
    model="gpt-4o",
    answered_model="gpt-4o-2024-08-06",
    prompt_tokens=1000,
    cached_tokens=400,
    completion_tokens=200,
    reasoning_tokens=50,
    cost_nano_usd=None,
    cost_source=None,
    started_at=NOON,
    latency_ms=12.5,
    tools_sent=4,
    tools_deferred=231,
    tokens_avoided=110_000,
    outcome="ok",
)
_TURN = TurnRow(
    request_id="req_1",
    tenant="acme",
    key="alice",
    user="u1",
    model="gpt-4o",
    started_at=NOON,
    duration_ms=15.0,
    outcome="ok",
    kept=3,
    deferred=232,
    predicted=4,
    discovered=1,
    hits=1,
    unused=3,
    missed=0,
    tokens_avoided=110_000,
)


def row(**fields: Any) -> Row:
    """A call of a model."""
    return msgspec.structs.replace(_ROW, **fields)


def turn(**fields: Any) -> TurnRow:
    """A whole turn."""
    return msgspec.structs.replace(_TURN, **fields)
