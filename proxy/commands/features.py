"""Settings and the environment come in; the features that are on, and keys they lack, go out."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from pydantic import SecretStr

from proxy.judge.build import chosen_providers
from proxy.judge.presets import resolve
from proxy.settings import Settings
from proxy.upstream.target import Targets

EMBEDDED = "embedded"


class Keyed(Protocol):
    """A model of Usher's own, with what may hold its key."""

    @property
    def base_url(self) -> str | None:
        """Its address; None means the upstream that serves it."""

    @property
    def api_key(self) -> SecretStr | None:
        """Its key."""

    @property
    def api_key_env(self) -> str | None:
        """The environment variable that holds its key."""


def describe_features(settings: Settings, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """The features that are on beside tools, each with a word about it."""
    found: list[tuple[str, str]] = [
        (name, mode)
        for name, mode in (("memory", settings.memory.mode), ("triage", settings.triage.mode))
        if mode != "off"
    ]
    own = settings.classification
    selecting = own.enabled and own.tool_selection.enabled
    if found or selecting or judges(settings, environ):
        found.append(("judge", describe_judge(judges(settings, environ))))
    return found


def describe_judge(chain: Mapping[str, bool]) -> str:
    """Who judges, in the order in which they are asked; without a key that is what is built in."""
    if not chain:
        return EMBEDDED
    text = ", ".join(name if keyed else f"{name} (no key)" for name, keyed in chain.items())
    return text if any(chain.values()) else f"{', '.join(chain)}: no key, {EMBEDDED} instead"


def judges(settings: Settings, environ: Mapping[str, str]) -> dict[str, bool]:
    """The configured decision models and chat judge, and whether each can be asked.

    Raises ConfigError, as a start would.
    """
    own = settings.classification
    if own.backend == "replay":
        return {"replay": True}
    if not own.enabled or own.backend == EMBEDDED:
        return {}
    chain: dict[str, bool] = {}
    if own.backend != "chat":
        for name, provider in chosen_providers(own).items():
            chain[name] = resolve(name, provider, environ) is not None
    if own.backend in {"auto", "chat"} and own.chat.model is not None:
        chain[own.chat.model] = True
    return chain


def keyless(settings: Settings, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each model of Usher's own that has no key, and where one would go. Raises ConfigError."""
    for name, keyed in judges(settings, environ).items():
        if not keyed:
            yield "judge", f"{name}: no key; set its api_key or api_key_env"
    own, agent, writer = settings.classification, settings.memory.agent, settings.triage.writer
    chat = own.enabled and own.backend in {"auto", "chat"}
    if chat and own.chat.model and not has_key(settings, own.chat, own.chat.model, environ):
        yield "judge", f"{own.chat.model}: no key; set classification.chat.api_key"
    # Without an address of its own the memory agent goes by the caller's key.
    remembers = settings.memory.mode != "off" and agent.base_url is not None
    if remembers and not has_key(settings, agent, agent.model or "", environ):
        yield "memory", f"{agent.model or 'agent'}: no key; set memory.agent.api_key"
    triages = settings.triage.mode != "off"
    if triages and writer.model and not has_key(settings, writer, writer.model, environ):
        yield "triage", f"{writer.model}: no key; set triage.writer.api_key"


def has_key(settings: Settings, own: Keyed, model: str, environ: Mapping[str, str]) -> bool:
    """Whether a model has a key: its own, or that of the upstream which serves it."""
    if own.api_key is not None or environ.get(own.api_key_env or ""):
        return True
    if own.base_url is not None:
        return False
    target = Targets(settings).choose(model)
    return target.kind != "openai" or target.api_key is not None
