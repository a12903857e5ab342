"""What an operator can set about context triage and about oversized tool results."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from proxy.wire import JSON


class TriageSection(BaseModel):
    """An immutable section; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Writer(TriageSection):
    """The small model that writes notes; without one nothing is compressed."""

    base_url: str | None = Field(
        None, description="Base URL with its `/v1`; unset: the upstream of the model's name."
    )
    api_key: SecretStr | None = Field(None, description="Key; unset: that upstream's own.")
    api_key_env: str | None = Field(None, description="Environment variable that holds the key.")
    model: str | None = Field(None, description="Model that writes notes; unset: no notes.")
    max_tokens: int = Field(160, ge=16, description="Longest note, in tokens.")
    max_chars: int = Field(12_000, ge=500, description="Characters of a part that it reads.")
    timeout_ms: int = Field(20_000, ge=1, description="Longest time for all notes of a plan.")
    at_once: int = Field(8, ge=1, description="Notes written at the same time.")
    parameters: dict[str, JSON] = Field(
        default_factory=dict, description="Added to every request, e.g. {temperature: 0}."
    )


class Protect(TriageSection):
    """What is never a candidate."""

    turns: int = Field(2, ge=1, description="Newest user turns that stay as they are.")
    steps: int = Field(3, ge=1, description="Newest tool steps that stay as they are.")
    first: bool = Field(True, description="The first user message stays: it states the task.")


class Cost(TriageSection):
    """When a plan pays: an edit makes the provider read everything behind it anew."""

    cache_read: float = Field(
        0.1, ge=0, le=1, description="Price of a cached prompt token, 1 being the full price."
    )
    cache_write: float = Field(
        1.25, ge=0, description="Price of a prompt token that is written to the cache."
    )
    cache_seconds: float = Field(
        300.0, ge=0, description="Idle seconds after which the provider's cache is cold."
    )
    expected_calls: int = Field(
        30, ge=0, description="Upstream calls that a conversation is expected to go on for."
    )
    uncached_share: float = Field(
        0.5,
        gt=0,
        le=1,
        description="Share of the budget from which to work where a provider caches nothing.",
    )
    min_reclaim: float = Field(
        0.3, ge=0, le=1, description="Share of the prompt that a plan must take out at least."
    )


class Triage(TriageSection):
    """Keep, compress or forget the old parts of a long conversation."""

    mode: Literal["off", "observe", "on"] = Field(
        "off", description="on, observe (decide and record, change nothing) or off."
    )
    budget_tokens: int = Field(
        60_000, ge=1, description="Reported prompt tokens above which old parts are judged."
    )
    window_tokens: int | None = Field(
        None,
        ge=1,
        description="Context window; unset: that of the model in litellm's table, if it is there.",
    )
    window_share: float = Field(
        0.6, gt=0, le=1, description="Share of the window that the budget never exceeds."
    )
    force_share: float = Field(
        0.85, gt=0, le=1, description="Share of the window from which the cost rule is off."
    )
    drop_from: float = Field(
        0.7, ge=0, le=1, description="Least probability of a drop; below, the part stays."
    )
    compress_from: float = Field(
        0.5, ge=0, le=1, description="Least probability of a compression; below, the part stays."
    )
    max_note_share: float = Field(
        0.6, gt=0, le=1, description="A note at least this long, as a share of its part, is none."
    )
    note_turns: int = Field(
        12,
        ge=1,
        description="User turns after which a note on a step or reply becomes a recallable label.",
    )
    min_turns: int = Field(
        3, ge=1, description="User turns, or steps of a tool loop, before anything is judged."
    )
    max_units: int = Field(
        128, ge=1, le=400, description="Parts judged for one plan, the longest first."
    )
    view_chars: int = Field(800, ge=100, description="Characters of a part that the judge reads.")
    state_chars: int = Field(
        22_000, ge=100, description="Characters of all parts that one request to the judge holds."
    )
    ask_again_turns: int = Field(
        10, ge=1, description="User turns after which a part that stayed is judged again."
    )
    timeout_ms: int = Field(8_000, ge=1, description="Deadline of the judgment.")
    embedded: bool = Field(
        False, description="Without a remote judge: forget small talk, clear old tool results."
    )
    recall: bool = Field(
        True, description="Offer a recall tool for what was taken out, if the request has tools."
    )
    recall_chars: int = Field(
        16_000, ge=500, description="Characters that one recall returns; the rest by offset."
    )
    protect: Protect = Field(Protect(), description="What is never a candidate.")
    cost: Cost = Field(Cost(), description="When a plan pays.")
    writer: Writer = Field(Writer(), description="The small model that writes notes.")

    @property
    def high_water(self) -> float:
        """Reported prompt tokens from which triage works."""
        if self.window_tokens is None:
            return self.budget_tokens
        return min(self.budget_tokens, self.window_share * self.window_tokens)

    @property
    def force_water(self) -> float:
        """Reported prompt tokens from which a plan need not pay."""
        return (
            float("inf") if self.window_tokens is None else (self.force_share * self.window_tokens)
        )


class Limits(TriageSection):
    """Caps on single pieces of a prompt."""

    max_tool_result_chars: int | None = Field(
        None, ge=200, description="A longer tool result is cut to head and tail; unset: never."
    )
