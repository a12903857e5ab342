"""What an operator can set about judgments; LibreChat's `classification:` block fits as it is."""

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from proxy.wire import JSON

LIBRECHAT = {
    "baseURL": "base_url",
    "needsToolThreshold": "needs_tool_below",
    "needsToolBelow": "needs_tool_below",
    "maxCatalogTools": "max_options",
    "surfaceNamedTools": "surface_named",
    "provider": "backend",
}
"""Its names for what has another name here; the rest differs in spelling only."""


class JudgeSection(BaseModel):
    """An immutable section that also takes camelCase keys; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def rename(cls, values: JSON) -> JSON:
        """Accept LibreChat's spelling."""
        if not isinstance(values, dict):
            return values
        known = cls.model_fields
        return {
            name if name in known or not isinstance(name, str) else snake(name): value
            for name, value in values.items()
        }


class DecisionProvider(JudgeSection):
    """A decision endpoint; what is unset comes from its preset."""

    preset: Literal[
        "systemone",
        "typesafe",
        "openrouter",
        "cloudflare-clef",
        "cloudflare-jev",
        "openai-decisions",
    ] = Field("systemone", description="Known endpoint that the other keys override.")
    base_url: str | None = Field(
        None, description="Endpoint URL; a bare host gets the path of its dialect."
    )
    model: str | None = Field(None, description="Model to ask, e.g. jev-latest.")
    dialect: Literal["systemone", "openai"] | None = Field(
        None, description="Wire format of the endpoint."
    )
    request_key: str | None = Field(
        None, description="Key that state and questions are wrapped in, e.g. input."
    )
    response_key: str | None = Field(
        None, description="Key that the reply is wrapped in, e.g. result."
    )
    api_key: SecretStr | None = Field(None, description="Key of the endpoint.")
    api_key_env: str | None = Field(
        None, description="Environment variable that holds the key; unset: the preset's."
    )
    account: str | None = Field(
        None, description="Cloudflare account id; unset: CLOUDFLARE_ACCOUNT_ID."
    )
    max_retries: int | None = Field(
        None, ge=0, le=5, description="Further attempts; unset: classification.max_retries."
    )
    timeout_ms: int | None = Field(
        None, ge=1, description="Longest time for this endpoint alone, in ms."
    )


class ChatJudge(JudgeSection):
    """A chat model that answers decisions by emulation."""

    base_url: str | None = Field(
        None, description="Base URL with its `/v1`; unset: upstream.base_url."
    )
    api_key: SecretStr | None = Field(None, description="Key; unset: upstream.api_key.")
    api_key_env: str | None = Field(None, description="Environment variable that holds the key.")
    model: str | None = Field(None, description="Small model to ask; unset: no emulation.")
    method: Literal["auto", "logprobs", "structured", "tool"] = Field(
        "auto", description="How; auto finds out once what the model can do."
    )
    parameters: dict[str, JSON] = Field(
        default_factory=dict, description="Added to every request, e.g. {reasoning_effort: none}."
    )
    trust_self_reported: bool = Field(
        False, description="Compute a confidence from numbers that the model wrote down itself."
    )


class ToolSelection(JudgeSection):
    """Letting the judge choose the tools that a turn ships."""

    enabled: bool = Field(False, description="Ask the judge; off: the embedded ranker predicts.")
    mode: Literal["choice", "per_tool"] = Field(
        "choice", description="One choice over the tools, or a yes/no for each of them."
    )
    shortlist: int = Field(5, ge=0, le=32, description="Most tools chosen by probability.")
    min_probability: float = Field(
        0.05, ge=0, le=1, description="A tool less probable than this is not chosen."
    )
    needs_tool_below: float = Field(
        0.15, ge=0, le=1, description="Below this, only tools that the user names are chosen."
    )
    low_confidence_below: float = Field(
        0.4, ge=0, le=1, description="A choice this unsure gets low_confidence_extra tools more."
    )
    low_confidence_extra: int = Field(3, ge=0, le=32, description="See low_confidence_below.")
    surface_named: bool = Field(True, description="Choose tools that the user names.")
    max_options: int = Field(
        64, ge=1, le=254, description="Tools offered to the judge; the ranker drops the rest."
    )
    description_chars: int = Field(
        300, ge=0, description="Characters of a tool's description that the judge reads."
    )
    timeout_ms: int = Field(2_500, ge=1, description="Longest time that a turn waits for it.")


class MemoryGate(JudgeSection):
    """The one question in front of the memory agent."""

    enabled: bool = Field(True, description="Ask before the memory agent runs.")
    threshold: float | None = Field(
        None, ge=0, le=1, description="Run the agent from this probability; unset: the backend's."
    )
    categorize: bool = Field(True, description="Ask which key the request belongs under, too.")
    category_threshold: float = Field(
        0.5, ge=0, le=1, description="A key less probable than this is not suggested."
    )
    detect_updates: bool = Field(True, description="Ask whether something stored changes, too.")
    timeout_ms: int = Field(4_000, ge=1, description="Longest time; the answer never waits for it.")


class Classification(JudgeSection):
    """Small typed questions to a judge: which tools does this need, is this to be remembered."""

    enabled: bool = Field(False, description="Ask remote judges; off: only what is built in.")
    backend: str = Field(
        "auto", description="auto, chat, embedded, a preset's name or one of providers."
    )
    providers: dict[str, DecisionProvider] = Field(
        default_factory=dict, description="Decision endpoints by name."
    )
    chat: ChatJudge = Field(ChatJudge(), description="A chat model that emulates decisions.")
    timeout_ms: int = Field(2_500, ge=1, description="Deadline of judgments that set none.")
    serve_timeout_ms: int = Field(
        30_000, ge=1, description="Deadline of decisions that clients ask for by HTTP."
    )
    max_retries: int = Field(1, ge=0, le=5, description="Further attempts within the deadline.")
    fuse: bool = Field(True, description="One request per turn for tools and memory; off: two.")
    breaker_failures: int = Field(
        3, ge=1, description="Failures in a row after which a judge is left alone."
    )
    breaker_seconds: float = Field(30.0, gt=0, description="How long it is left alone.")
    cache_seconds: float = Field(300.0, ge=0, description="How long an answer may be reused.")
    cache_entries: int = Field(2_048, ge=0, description="Answers kept for reuse.")
    context_messages: int = Field(6, ge=0, description="Earlier messages that the judge reads.")
    message_chars: int = Field(800, ge=1, description="Characters of each, from both ends.")
    state_chars: int = Field(6_000, ge=1, description="Characters of all that the judge reads.")
    questions: str | None = Field(
        None, description="Folder with own question wording; unset: the built-in one."
    )
    calibration: str | None = Field(
        None, description="Lock file with thresholds written by `usher calibrate`."
    )
    replay: str | None = Field(None, description="File with recorded answers, for backend replay.")
    tool_selection: ToolSelection = Field(
        ToolSelection(), description="Letting the judge choose the tools that a turn ships."
    )
    memory_gate: MemoryGate = Field(
        MemoryGate(), description="The question in front of the memory agent."
    )

    @field_validator("providers", mode="before")
    @classmethod
    def preset_by_name(cls, providers: JSON) -> JSON:
        """A provider that is named like a preset starts from it, as in LibreChat."""
        if not isinstance(providers, dict):
            return providers
        return {
            name: {"preset": PRESET_NAMES[name], **own}
            if name in PRESET_NAMES and isinstance(own, dict)
            else own
            for name, own in providers.items()
        }


PRESET_NAMES = {
    "http": "systemone",
    "systemone": "systemone",
    "typesafe": "typesafe",
    "openrouter": "openrouter",
    "cloudflare": "cloudflare-jev",
    "cloudflare-jev": "cloudflare-jev",
    "cloudflare-clef": "cloudflare-clef",
    "openai-decisions": "openai-decisions",
}
"""Preset by the name an operator may use for it; LibreChat's `http` and `cloudflare` included."""


def snake(name: str) -> str:
    """LibreChat's spelling of a key as ours."""
    known = LIBRECHAT.get(name)
    return known or re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
