"""A model's name and what an operator wants come in; a request that this model takes goes out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from proxy.wire import JSON, JSONObject

_REASONS = re.compile(r"(?:^|[/.~])(?:gpt-(?:[5-9]|\d{2,})|o\d)(?:[-.\d]|$)")
"""OpenAI's reasoning models take no temperature, and count their limit differently."""
_USER_FIRST = re.compile(r"bedrock/|(?:^|[/.])(?:amazon|meta|mistral|cohere)\.")
"""Converse models of which some take no system text."""


@dataclass(frozen=True, slots=True)
class Ability:
    """Which parameters go into requests; `dropped` were refused by the model itself."""

    temperature: bool = True
    limit: str = "max_tokens"
    user_first: bool = False
    dropped: frozenset[str] = frozenset()

    def without(self, parameter: str) -> "Ability":
        """After a refusal that named a parameter; a limit gets its other name first."""
        if parameter == "max_tokens" and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        return replace(self, dropped=self.dropped | {parameter})

    def fit(self, body: JSONObject) -> JSONObject:
        """The body without what the model does not take."""
        fitted = dict(body)
        if "max_tokens" in fitted:
            fitted[self.limit] = fitted.pop("max_tokens")
        if not self.temperature or _thinks(fitted):
            fitted.pop("temperature", None)
        if self.user_first:
            fitted["messages"] = merge_system(fitted["messages"])
        return {k: v for k, v in fitted.items() if k not in self.dropped and v is not None}


def ability_of(model: str) -> Ability:
    """What is known of a model before it was asked."""
    reasons = bool(_REASONS.search(model))
    return Ability(
        temperature=not reasons,
        limit="max_completion_tokens" if reasons else "max_tokens",
        user_first=bool(_USER_FIRST.search(model)),
    )


def refused_parameter(error: JSON, sent: Mapping[str, JSON]) -> str | None:
    """The parameter that a 400 complains of, if it is one that can be left out."""
    inner = error.get("error") if isinstance(error, dict) else None
    if not isinstance(inner, dict):
        return None
    free = [name for name in sent if name not in {"model", "messages", "tools"}]
    named = inner.get("param")
    if named in free:
        return str(named)
    text = str(inner.get("message"))
    return next((name for name in free if re.search(rf"\b{name}\b", text)), None)


def merge_system(messages: list[JSONObject]) -> list[JSONObject]:
    """The instructions in front of the first user message, for models without a system role."""
    system = [m for m in messages if m["role"] == "system"]
    rest = [m for m in messages if m["role"] != "system"]
    if not system or not rest:
        return messages
    text = "\n\n".join([*(str(m["content"]) for m in system), str(rest[0]["content"])])
    return [rest[0] | {"content": text}, *rest[1:]]


def _thinks(body: JSONObject) -> bool:
    """Anthropic refuses a temperature beside thinking."""
    thinking = body.get("thinking")
    return isinstance(thinking, dict) and thinking.get("type") in ("enabled", "adaptive")
