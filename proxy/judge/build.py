"""Settings and collaborators in; the judges that a deployment has out.

The default chain is: the configured decision backend, then chat emulation on a configured small
model, then what is built in. Whatever lacks a key is left out with one warning.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from proxy.errors import BadRequest, ConfigError
from proxy.judge.ask import Desk, Judge, Member
from proxy.judge.books import Prices
from proxy.judge.breaker import Breaker, Patience
from proxy.judge.cache import AnswerCache
from proxy.judge.calibrate import Lock, read_lock
from proxy.judge.chat import ChatBackend, Style
from proxy.judge.embedded import EmbeddedBackend, Model
from proxy.judge.exchange import Endpoint, Exchange
from proxy.judge.job import Backend
from proxy.judge.native import build_decision_backend, json_headers
from proxy.judge.presets import PRESETS, resolve
from proxy.judge.replay import Recording, ReplayBackend, read_recording
from proxy.judge_settings import PRESET_NAMES, Classification, DecisionProvider
from proxy.ledger.usage import Row
from proxy.settings import Settings
from proxy.upstream.target import Targets, url_for
from proxy.upstream.transport import Transport

KEPT_JUDGES = 64
DECISION_NAMES = ("jev", "clef", "typesafe/", "~typesafe/", "gpt-6-luna", "usher")
"""Model names that decision clients send by default; they mean whatever judge is configured."""


@dataclass(frozen=True, slots=True)
class Around:
    """What judges work with; `ways` reaches upstreams by kind of target, as in the turn."""

    ways: Mapping[str, Transport]
    prices: Prices
    record: Callable[[Row], None]
    log: FilteringBoundLogger
    environ: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, Model] = field(default_factory=dict)


class Judges:
    """The judge of a deployment's own questions, and one for any model that a client names."""

    def __init__(self, settings: Settings, around: Around) -> None:
        self._settings = settings
        self._around = around
        self._targets = Targets(settings)
        own = settings.classification
        self._desk = Desk(
            around.prices,
            around.record,
            AnswerCache(own.cache_seconds, own.cache_entries),
            around.log,
            _read_lock(own.calibration),
        )
        self._patience = Patience(own.breaker_failures, own.breaker_seconds)
        self.default = self._judge(list(self._chain(own)))
        remote = [member for member in self.default.chain if not member.backend.local]
        self.served = Judge(remote, self._desk) if remote else self.default
        self._named: OrderedDict[tuple[str, str | None, str | None], Judge] = OrderedDict()

    def for_model(
        self, name: str, authorization: str | None = None, bound: str | None = None
    ) -> Judge:
        """The judge that answers for a model name; `authorization` is for a keyless upstream.

        Chat models are asked at the upstream `bound`, if a key is bound to one. Raises Forbidden
        when that one is not configured.

        A decision model's name means the configured judge, any other name that chat model. What
        is built in only answers where nothing else is configured: a client must not take our
        ranker's opinion for that of a decision model that is down.
        """
        for member in self.served.chain:
            if name in {member.backend.name, member.backend.model}:
                return self.served
        if name.startswith(DECISION_NAMES):
            return self.served
        key = (name, authorization, bound)
        judge = self._named.get(key)
        if judge is None:
            backend = self._upstream_chat(name, authorization, bound)
            forgiving = replace(self._patience, forgiving=True)
            judge = Judge([Member(backend, Breaker(forgiving))], self._desk)
            self._named[key] = judge
            if len(self._named) > KEPT_JUDGES:
                self._named.popitem(last=False)
        self._named.move_to_end(key)
        return judge

    @property
    def lock(self) -> Lock:
        """The calibrated thresholds, by question."""
        return self._desk.lock

    def breakers(self) -> Mapping[str, int]:
        """For each configured judge whether it is left alone, as 0 or 1.

        Those that clients name are not among them: a wrong name of theirs is no alarm.
        """
        states: dict[str, int] = {}
        for member in self.default.chain:
            name = member.backend.name
            states[name] = max(states.get(name, 0), int(member.breaker.open))
        return states

    def names(self) -> Mapping[str, str]:
        """The decision models that are served here, with a description each."""
        remote = [m.backend for m in self.default.chain if not m.backend.local]
        found = {backend.model: f"Decisions by {backend.name}." for backend in remote}
        return {"jev-latest": "The configured judge under the name clients ask for.", **found}

    def _judge(self, backends: Sequence[Backend]) -> Judge:
        members = [Member(backend, Breaker(self._patience)) for backend in backends]
        return Judge(members, self._desk)

    def _chain(self, own: Classification) -> Iterator[Backend]:
        if own.backend == "replay":
            yield ReplayBackend(_read_recording(own.replay))
            return
        if own.enabled and own.backend not in {"embedded", "chat"}:
            yield from self._decision_backends(own)
        if own.enabled and own.backend in {"auto", "chat"}:
            yield from self._small_chat(own)
        yield EmbeddedBackend(self._around.models)

    def _decision_backends(self, own: Classification) -> Iterator[Backend]:
        for name, provider in chosen_providers(own).items():
            resolved = resolve(name, provider, self._around.environ)
            if resolved is None:
                self._around.log.warning(
                    "judge_without_key", backend=name, hint="set its api_key or api_key_env"
                )
                continue
            retries = own.max_retries if provider.max_retries is None else provider.max_retries
            yield build_decision_backend(
                name,
                resolved,
                self._around.ways["openai"],
                retries=retries,
                seconds=provider.timeout_ms / 1000 if provider.timeout_ms else None,
            )

    def _small_chat(self, own: Classification) -> Iterator[Backend]:
        chat = own.chat
        if chat.model is None:
            if own.backend == "chat":
                raise ConfigError("classification.chat.model is required for backend chat")
            return
        key = chat.api_key.get_secret_value() if chat.api_key else None
        if key is None and chat.api_key_env:
            key = self._around.environ.get(chat.api_key_env)
        if chat.base_url is None:
            yield self._upstream_chat(chat.model, f"Bearer {key}" if key else None)
            return
        url = chat.base_url.rstrip("/") + "/chat/completions"
        yield self._chat("chat", chat.model, url, key, "openai")

    def _upstream_chat(
        self, model: str, authorization: str | None, bound: str | None = None
    ) -> Backend:
        """A chat model of the gateway's own upstreams."""
        target = self._targets.choose(model) if bound is None else self._targets.named(bound)
        key = target.api_key
        if key is None and authorization is not None:
            key = authorization.removeprefix("Bearer ")
        url = url_for(target, "/v1/chat/completions", deployment=model if target.azure else None)
        return self._chat(target.provider, target.model or model, url, key, target.kind)

    def _chat(self, name: str, model: str, url: str, key: str | None, kind: str) -> Backend:
        own = self._settings.classification
        transport = self._around.ways.get(kind)
        if transport is None:
            raise BadRequest(f"Models of provider {name} cannot judge.")
        headers = json_headers(key)
        if key is not None and "azure" in url:
            headers.append((b"api-key", key.encode()))
        endpoint = Endpoint(name, model, url, headers, own.max_retries, decisions=False)
        style = Style(
            None if own.chat.method == "auto" else own.chat.method,
            own.chat.parameters,
            own.chat.trust_self_reported,
        )
        return ChatBackend(Exchange(transport, endpoint), style)


def chosen_providers(own: Classification) -> Mapping[str, DecisionProvider]:
    """The providers that `backend` means; a preset's bare name is one without further keys."""
    if own.backend == "auto":
        return own.providers
    found = own.providers.get(own.backend)
    if found is not None:
        return {own.backend: found}
    preset = PRESET_NAMES.get(own.backend)
    if preset is None:
        known = ", ".join(["auto", "chat", "embedded", "replay", *own.providers, *PRESETS])
        raise ConfigError(f"classification.backend: {own.backend} is none of {known}")
    return {own.backend: DecisionProvider.model_validate({"preset": preset})}


def _read_lock(path: str | None) -> Lock:
    if path is None:
        return {}
    try:
        return read_lock(Path(path).read_bytes())
    except OSError:
        raise ConfigError(f"classification.calibration: {path} cannot be read") from None


def _read_recording(path: str | None) -> Recording:
    if path is None:
        raise ConfigError("classification.replay is required for backend replay")
    try:
        return read_recording(Path(path).read_bytes().splitlines())
    except OSError:
        raise ConfigError(f"classification.replay: {path} cannot be read") from None
