"""Settings and a gateway's collaborators come in; its memory goes out, or None where it is off."""

from pathlib import Path

from proxy.errors import ConfigError
from proxy.memory.bank import Bank
from proxy.memory.database import Database, memory_url
from proxy.memory.near import Near, Remembered
from proxy.memory.offline import OfflineWriter
from proxy.memory.pinned import Pinned
from proxy.memory.service import Brought, MemoryService, Parts
from proxy.memory.writer import ChatWriter, Place, Writer
from proxy.settings import Settings
from proxy.upstream.headers import request_headers
from proxy.upstream.target import Target, Targets, url_for
from proxy.wire import Headers


def open_bank(settings: Settings, data: Path) -> Bank:
    """The store alone, for commands. Raises ConfigError."""
    return Bank(
        Database(memory_url(settings.memory.url, data)),
        settings.memory.token_limit,
        settings.memory.retention_days,
    )


def build_memory(settings: Settings, near: Near) -> Remembered:
    """The service of a turn, and the store behind it. Raises ConfigError."""
    assert near.judge is not None
    bank = near.bank or open_bank(settings, near.data)
    parts = Parts(
        bank=bank,
        pinned=Pinned(near.store, settings.memory.refresh_seconds),
        judge=near.judge,
        make_writer=Writers(settings, near).make,
        spawn=near.spawn,
        log=near.log,
        runs=near.runs,
    )
    gate = settings.classification.memory_gate
    return Remembered(MemoryService(parts, settings.memory, gate), bank)


class Writers:
    """The memory agent's model for each request; the same one as long as it is the same place."""

    def __init__(self, settings: Settings, near: Near) -> None:
        self._own = settings.memory.agent
        self._model = self._own.model or settings.classification.chat.model
        self._targets = Targets(settings)
        self._near = near
        self._configured: ChatWriter | None = None
        if self._own.base_url is not None and self._model is None:
            raise ConfigError("memory.agent.model is required with memory.agent.base_url")

    def make(self, brought: Brought) -> Writer:
        """The configured model; without one the request's own, and offline the stand-in."""
        model = self._model or brought.model
        if self._own.base_url is not None:
            self._configured = self._configured or self._elsewhere(self._own.base_url, model)
            return self._configured
        target = self._targets.choose(model) if self._model else brought.target
        if target.kind == "standin":
            return OfflineWriter()
        key = self._key() or target.api_key
        headers = _json_headers(key) if key else _callers_headers(brought, target)
        deployment = model if target.azure else None
        url = url_for(target, "/v1/chat/completions", deployment=deployment)
        place = Place(target.provider, target.model or model, url, headers)
        return self._chat(place, target.kind)

    def _elsewhere(self, base_url: str, model: str) -> ChatWriter:
        url = base_url.rstrip("/") + "/chat/completions"
        return self._chat(Place("memory", model, url, _json_headers(self._key())), "openai")

    def _chat(self, place: Place, kind: str) -> ChatWriter:
        seconds = self._own.timeout_ms / 1000
        return ChatWriter(self._near.ways[kind], place, seconds, self._near.record)

    def _key(self) -> str | None:
        if self._own.api_key is not None:
            return self._own.api_key.get_secret_value()
        return self._near.environ.get(self._own.api_key_env or "")


def _json_headers(key: str | None) -> Headers:
    headers: Headers = [(b"content-type", b"application/json")]
    if key:
        headers.append((b"authorization", f"Bearer {key}".encode()))
    return headers


def _callers_headers(brought: Brought, target: Target) -> Headers:
    """The caller's own credentials, for an upstream without a key; never a gateway key."""
    request = brought.request
    headers = request_headers(
        request.headers,
        target,
        intercepted=True,
        own_credentials=not request.caller.used_gateway_key,
    )
    once = {b"idempotency-key", b"content-length"}
    return [(name, value) for name, value in headers if name.lower() not in once]
