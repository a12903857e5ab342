"""Which features are on, and what they lack."""

import pytest

from proxy.commands.features import describe_features, describe_judge, keyless
from proxy.settings import Settings
from proxy.wire import JSONObject

TYPESAFE: JSONObject = {
    "classification": {"enabled": True, "providers": {"typesafe": {"preset": "typesafe"}}}
}


def test_what_is_off_is_not_named() -> None:
    """The banner of a plain gateway stays short."""
    named = dict(describe_features(Settings(), {}))
    assert "memory" not in named
    assert "triage" not in named


@pytest.mark.parametrize(
    ("chain", "text"),
    [
        ({}, "embedded"),
        ({"typesafe": True}, "typesafe"),
        ({"typesafe": False}, "typesafe: no key, embedded instead"),
        ({"typesafe": False, "gpt-5-nano": True}, "typesafe (no key), gpt-5-nano"),
    ],
)
def test_who_judges(chain: dict[str, bool], text: str) -> None:
    """By name, and honest about the one that cannot be asked."""
    assert describe_judge(chain) == text


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, []),
        ({"classification": {**TYPESAFE["classification"], "enabled": False}}, []),
        (TYPESAFE, ["judge"]),
        (
            {
                "classification": {
                    "enabled": True,
                    "chat": {"model": "m", "base_url": "http://a.test/v1"},
                }
            },
            ["judge"],
        ),
        (
            {"memory": {"mode": "on", "agent": {"model": "m", "base_url": "http://a.test/v1"}}},
            ["memory"],
        ),
        (
            {
                "triage": {"mode": "on", "writer": {"model": "m"}},
                "upstream": {"base_url": "http://a.test/v1"},
            },
            ["triage"],
        ),
        ({"triage": {"mode": "off", "writer": {"model": "m", "base_url": "http://a/v1"}}}, []),
    ],
)
def test_models_without_a_key_are_found(values: JSONObject, found: list[str]) -> None:
    """Before a user misses what they would have done."""
    assert [what for what, _ in keyless(Settings.model_validate(values), {})] == found


def test_a_key_of_the_environment_counts() -> None:
    """The preset's own variable."""
    settings = Settings.model_validate(TYPESAFE)
    assert not list(keyless(settings, {"TYPESAFE_API_KEY": "k"}))
