"""What an operator can set about memory; LibreChat's `memory:` block fits as far as it goes."""

import re
from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from proxy.judge_settings import JudgeSection
from proxy.wire import JSON

KEY = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""What a key looks like, wherever it comes from."""

PRESETS = {
    "openwebui": ("x-openwebui-user-id",),
    "librechat": ("x-librechat-user-id",),
    "supermemory": ("x-sm-user-id",),
    "litellm": ("x-litellm-customer-id", "x-litellm-end-user-id"),
}
"""Headers in which applications name the user whom they speak for."""


class MemoryAgent(JudgeSection):
    """The small model that writes memories; nothing else ever does."""

    model: str | None = Field(
        None, description="Its name; unset: classification.chat.model, else the client's model."
    )
    base_url: str | None = Field(
        None, description="Base URL with its `/v1`; unset: the upstream that serves the model."
    )
    api_key: SecretStr | None = Field(None, description="Key; unset: that upstream's.")
    api_key_env: str | None = Field(None, description="Environment variable that holds the key.")
    temperature: float | None = Field(
        0.4, ge=0, le=2, description="Sent where the model takes one."
    )
    max_output_tokens: int = Field(300, ge=16, description="Longest answer of one call.")
    max_calls: int = Field(3, ge=1, le=10, description="Most model calls for one message.")
    timeout_ms: int = Field(20_000, ge=1, description="Longest time of one call.")
    instructions: str | None = Field(
        None,
        description="Replaces the built-in instructions; what is stored is checked anyway.",
    )
    parameters: dict[str, JSON] = Field(
        default_factory=dict, description="Added to every request; null removes one."
    )


class Memory(JudgeSection):
    """Remembering what users ask to be remembered."""

    mode: Literal["off", "observe", "read", "write", "on"] = Field(
        "off", description="on, read or write (only that), observe (judge and record) or off."
    )
    url: str | None = Field(
        None, description="SQLAlchemy URL; unset: SQLite in the data folder (USHER_DATA)."
    )
    user_headers: tuple[str, ...] = Field(
        (), description="Headers that name the user, or openwebui, librechat, supermemory, litellm."
    )
    trust: Literal["auto", "header", "body", "none"] = Field(
        "auto", description="Where a user may come from; auto: the body only without gateway keys."
    )
    strict: bool = Field(
        False, description="Refuse requests that name two users; off: no memory for them."
    )
    scope: Literal["user", "user+app", "user+project"] = Field(
        "user", description="What one set is: a user's memories, or theirs in one app or project."
    )
    read_user: bool = Field(
        False, description="Beside those of an app or project, read what the user has outside any."
    )
    valid_keys: dict[str, str | None] = Field(
        default_factory=dict, description="Allowed keys, each with what it is for; empty: any key."
    )
    token_limit: int = Field(4_000, ge=1, description="Tokens of all values of one user.")
    char_limit: int = Field(2_000, ge=1, description="Characters of one value.")
    window: int = Field(5, ge=1, le=20, description="Messages that the memory agent may read.")
    runs_per_minute: int = Field(10, ge=1, description="Most runs of the agent for one user.")
    confirm: Literal["off", "suspicious", "all"] = Field(
        "off",
        description="What waits for the user's word before it is stored: nothing, values that "
        "read like instructions (off: refused), or everything.",
    )
    retention_days: float | None = Field(
        None, gt=0, description="Memories that nobody changed for so long go; unset: they stay."
    )
    page_secret: SecretStr | None = Field(
        None,
        min_length=16,
        description="Signs links to a page where users see and delete their memories; unset: none.",
    )
    queue: int = Field(256, ge=1, description="Most runs under way; more are given up.")
    join_ms: int = Field(
        150, ge=0, description="Longest wait for a memory's result after the answer's end."
    )
    note_ms: int = Field(
        15, ge=0, description="Longest wait for the gate before the answer, for the note; 0: none."
    )
    placement: Literal["system", "user_tail", "none"] = Field(
        "system", description="Where memories stand: after the system text, or in the last message."
    )
    inject_tokens: int = Field(1_024, ge=0, description="Most tokens of memories in a prompt.")
    refresh_seconds: float = Field(
        600.0, ge=0, description="Idle time after which a conversation gets newer memories."
    )
    agent: MemoryAgent = Field(MemoryAgent(), description="The small model that writes memories.")

    @model_validator(mode="before")
    @classmethod
    def accept_librechat(cls, values: JSON) -> JSON:
        """LibreChat has a list of keys, and says `disabled` instead of a mode."""
        if not isinstance(values, dict):
            return values
        values = dict(values)
        if "disabled" in values:
            values.setdefault("mode", "off" if values.pop("disabled") else "on")
        for foreign in ("personalize", "maxInputTokens"):
            values.pop(foreign, None)
        if "messageWindowSize" in values:
            values["window"] = values.pop("messageWindowSize")
        return values

    @field_validator("valid_keys", mode="before")
    @classmethod
    def check_keys(cls, keys: JSON) -> JSON:
        """A key that could never be written is an error now, not at the first write."""
        named = dict.fromkeys(keys) if isinstance(keys, list | tuple) else keys
        for key in named or ():
            if not isinstance(key, str) or not KEY.fullmatch(key):
                raise ValueError(f"{key!r} is no key: use a-z, 0-9 and _, at most 64 characters")
        return named or {}

    @field_validator("user_headers", mode="after")
    @classmethod
    def expand_presets(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """An application's name stands for its headers."""
        return tuple(h for name in names for h in PRESETS.get(name.lower(), (name.lower(),)))
