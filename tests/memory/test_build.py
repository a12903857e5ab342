"""Which model writes."""

from pathlib import Path

import pytest
import structlog
from prometheus_client import CollectorRegistry

from proxy.errors import ConfigError
from proxy.memory.build import Writers
from proxy.memory.near import Near
from proxy.memory.offline import OfflineWriter
from proxy.memory.service import Brought
from proxy.memory.tally import RunTally
from proxy.memory.writer import ChatWriter
from proxy.plan.envelope import open_envelope
from proxy.plan.policy import Policy
from proxy.settings import Settings
from proxy.state.memory import MemoryStore
from proxy.upstream.target import Targets
from proxy.wire import JSONObject
from tests.fakes.transport import FakeTransport
from tests.turns import chat_request


def make(settings: JSONObject, key: str | None = "Bearer mine") -> object:
    """The writer of a request to that configuration."""
    built = Settings.model_validate(settings)
    ways = {"openai": FakeTransport(), "standin": FakeTransport(), "litellm": FakeTransport()}
    log, environ = structlog.get_logger(), {"MY_KEY": "secret"}
    runs, store = RunTally(CollectorRegistry()), MemoryStore(1, 1)
    near = Near(Path(), ways, None, store, lambda _: True, lambda _: None, log, environ, runs)
    headers = [(b"authorization", key.encode())] if key else []
    envelope = open_envelope(b'{"model":"big"}')
    assert envelope is not None
    target = Targets(built).choose("big")
    request = chat_request(b"", headers)
    return Writers(built, near).make(Brought(request, envelope, Policy(), target, "big", None))


def test_offline_there_is_the_stand_in() -> None:
    """Without an upstream nothing is asked of anybody."""
    assert isinstance(make({}), OfflineWriter)


def test_the_requests_own_model_with_the_callers_key() -> None:
    """Where no small model is configured."""
    writer = make({"upstream": {"base_url": "http://u/v1"}})
    assert isinstance(writer, ChatWriter)
    assert (writer.place.model, writer.place.url) == ("big", "http://u/v1/chat/completions")
    assert (b"authorization", b"Bearer mine") in writer.place.headers


def test_a_model_of_its_own() -> None:
    """Elsewhere, with a key of its own."""
    agent = {"base_url": "http://small/v1", "model": "mini", "api_key_env": "MY_KEY"}
    writer = make({"upstream": {"base_url": "http://u/v1"}, "memory": {"agent": agent}})
    assert isinstance(writer, ChatWriter)
    assert writer.place.url == "http://small/v1/chat/completions"
    assert (b"authorization", b"Bearer secret") in writer.place.headers


def test_a_place_needs_a_model() -> None:
    """Said at the start, not at the first message."""
    with pytest.raises(ConfigError, match="model is required"):
        make({"memory": {"agent": {"base_url": "http://small/v1"}}})
