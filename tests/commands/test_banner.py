"""What a person reads when the gateway starts."""

from pathlib import Path

import pytest

from proxy.commands.banner import Start, as_data, as_text, describe_upstream
from proxy.settings import Settings
from proxy.wire import JSONObject


def start_with(values: JSONObject, port: int = 8787) -> Start:
    """A start with these settings."""
    return Start(Settings.model_validate(values), port, Path("/data"), None)


def test_the_url_can_be_pasted() -> None:
    """The banner shows the base URL that an application needs."""
    text = as_text(start_with({}))
    assert "Usher listens on http://127.0.0.1:8787/v1" in text
    assert "OPENAI_BASE_URL=http://127.0.0.1:8787/v1" in text


def test_the_stand_in_is_announced() -> None:
    """Nobody takes the embedded model for a real one."""
    assert "stand-in model, offline" in as_text(start_with({}))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:1/v1"),
        ("::", "http://[::1]:1/v1"),
        ("gate.local", "http://gate.local:1/v1"),
    ],
)
def test_an_address_for_all_is_shown_as_one_that_works(host: str, url: str) -> None:
    """0.0.0.0 is no address that a client can use."""
    assert start_with({"server": {"host": host}}, port=1).url == url


@pytest.mark.parametrize(
    ("key", "words"), [(None, "the caller's own key"), ("sk-secret", "the configured key")]
)
def test_whose_key_goes_up_is_said(key: str | None, words: str) -> None:
    """The operator sees who pays, and sees no key and no password."""
    values = {"upstream": {"base_url": "http://me:sesame@host/v1", "api_key": key}}
    text = describe_upstream(start_with(values).settings.upstream)
    assert text == f"http://***:***@host/v1 with {words}"


def test_an_open_gateway_says_so() -> None:
    """The banner says whether callers need a key."""
    assert "none: who reaches it may use it" in as_text(start_with({}))
    locked = Start(Settings(), 8787, Path("/data"), None, keyed=True)
    assert "every caller needs one" in as_text(locked)


def test_features_that_are_on_are_named() -> None:
    """An operator sees at the start that the judge asked for is not the one that judges."""
    values: JSONObject = {
        "memory": {"mode": "on"},
        "triage": {"mode": "observe"},
        "classification": {"enabled": True, "providers": {"typesafe": {"preset": "typesafe"}}},
    }
    text = as_text(start_with(values))
    assert "  memory    on\n  triage    observe\n" in text
    assert "  judge     typesafe: no key, embedded instead\n" in text


def test_any_key_will_do_for_the_stand_in() -> None:
    """Official SDKs do not start without a key; with a real upstream or gateway keys it is real."""
    assert "OPENAI_API_KEY=any your-application" in as_text(start_with({}))
    real = {"upstream": {"base_url": "http://host/v1"}}
    assert "OPENAI_API_KEY=any" not in as_text(start_with(real))
    assert "OPENAI_API_KEY=any" not in as_text(Start(Settings(), 1, Path("/d"), None, keyed=True))


def test_providers_are_listed() -> None:
    """Each further upstream is shown with its models."""
    values = {"providers": [{"name": "anthropic", "models": ["claude-*"]}]}
    assert "anthropic: claude-*" in as_text(start_with(values))


def test_the_same_as_data() -> None:
    """Programs get one object with the URL in it."""
    assert as_data(start_with({}, port=9)) == {
        "url": "http://127.0.0.1:9/v1",
        "upstream": None,
        "data": "/data",
        "config": None,
        "keyed": False,
    }
