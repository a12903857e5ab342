"""Foreign usage objects in, numbers out; and the two kinds of line that the ledger keeps."""

from typing import Literal, TypeAlias

import msgspec

from proxy.wire import JSON, JSONObject

Context: TypeAlias = Literal["main", "search_round", "repair", "classification", "memory", "triage"]

NANO = 1_000_000_000
_MOST_TOKENS = 10**12
_MOST_NANO_USD = 10**15
"""More than that in one call is no count and no bill; sums of these fit into 64 bits."""


class Row(msgspec.Struct, frozen=True, gc=False):
    """One upstream call or one attempt at a judgment; None means unknown, which is never 0.

    A msgspec struct because it is made on every turn: 0.5 µs, a frozen dataclass takes 3.8.

    `estimated` marks token counts that the provider did not report. `detail` is small JSON for
    the timeline: question ids and probabilities of a judgment, say; never text of the user.
    """

    request_id: str
    tenant: str
    key: str
    user: str | None
    context: str
    round: int
    provider: str
    model: str
    answered_model: str | None
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    cost_nano_usd: int | None
    cost_source: str | None
    started_at: float
    latency_ms: float | None
    tools_sent: int | None
    tools_deferred: int | None
    tokens_avoided: int | None
    outcome: str
    cache_write_tokens: int | None = None
    service_tier: str | None = None
    estimated: bool = False
    detail: JSONObject | None = None


class TurnRow(msgspec.Struct, frozen=True, gc=False):
    """One request of a client, written when its answer ended however it ended.

    `hits`, `unused` and `missed` count predictions: called, not called, and tools that were
    called without one. `detail` holds `plan`, `memory` and `triage` for the timeline.
    """

    request_id: str
    tenant: str
    key: str
    user: str | None
    model: str
    started_at: float
    duration_ms: float | None
    outcome: str
    kept: int | None = None
    deferred: int | None = None
    predicted: int | None = None
    discovered: int | None = None
    hits: int | None = None
    unused: int | None = None
    missed: int | None = None
    tokens_avoided: int | None = None
    detail: JSONObject | None = None


class Tokens(msgspec.Struct, frozen=True, gc=False):
    """What a usage object says; `prompt` includes cached and cache-written tokens."""

    prompt: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    cost_nano_usd: int | None = None


NO_TOKENS = Tokens()


def read_usage(usage: JSONObject | None) -> Tokens:
    """Read the usage object of chat completions, responses, messages or decisions.

    Every field is checked by itself: a broken one is unknown and the others still count.
    """
    if not isinstance(usage, dict):
        return NO_TOKENS
    prompt_details = _object(usage, "prompt_tokens_details", "input_tokens_details")
    completion_details = _object(usage, "completion_tokens_details", "output_tokens_details")
    cached = _count(prompt_details, "cached_tokens")
    if cached is None:
        cached = _count(usage, "cache_read_input_tokens", "prompt_cache_hit_tokens")
    cache_write = _count(prompt_details, "cache_write_tokens", "cache_creation_tokens")
    if cache_write is None:
        cache_write = _count(usage, "cache_creation_input_tokens")
    return Tokens(
        prompt=_prompt(usage, cached, cache_write),
        cached=cached,
        cache_write=cache_write,
        completion=_count(usage, "completion_tokens", "output_tokens"),
        reasoning=_count(completion_details, "reasoning_tokens"),
        cost_nano_usd=_reported_cost(usage),
    )


def nano_usd(usd: JSON) -> int | None:
    """A price in USD, as a provider may spell it, in whole nano-USD; None when it is none."""
    if usd is None or isinstance(usd, bool) or not isinstance(usd, int | float | str):
        return None
    try:
        nano = round(float(usd) * NANO)
    except (ValueError, OverflowError):
        return None
    return nano if 0 <= nano <= _MOST_NANO_USD else None


def _prompt(usage: JSONObject, cached: int | None, cache_write: int | None) -> int | None:
    prompt = _count(usage, "prompt_tokens")
    if prompt is not None:
        return prompt
    prompt = _count(usage, "input_tokens")
    if prompt is None or not _counts_cache_apart(usage):
        return prompt
    return prompt + (cached or 0) + (cache_write or 0)


def _counts_cache_apart(usage: JSONObject) -> bool:
    """Anthropic's messages leave cached tokens out of `input_tokens`; nobody else does."""
    return "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage


def _reported_cost(usage: JSONObject) -> int | None:
    """OpenRouter bills in `cost` (its own share only, for a caller's key); Perplexity nests it."""
    cost = usage.get("cost")
    if cost is None:
        return None
    if isinstance(cost, dict):
        return nano_usd(cost.get("total_cost"))
    nano = nano_usd(cost)
    if nano is None or usage.get("is_byok") is not True:
        return nano
    upstream = nano_usd(_object(usage, "cost_details").get("upstream_inference_cost"))
    return None if upstream is None else nano + upstream


def _object(source: JSONObject, *names: str) -> JSONObject:
    for name in names:
        value = source.get(name)
        if isinstance(value, dict):
            return value
    return {}


def _count(source: JSONObject, *names: str) -> int | None:
    for name in names:
        value = source.get(name)
        if value is None:
            continue
        if type(value) is int and 0 <= value <= _MOST_TOKENS:
            return value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS:
            return value
    return None
