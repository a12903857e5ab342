"""The endpoints of the market, and what an operator lays over them."""

import pytest

from proxy.errors import ConfigError
from proxy.judge.presets import PRESETS, Dialect, complete_path, resolve
from proxy.judge_settings import DecisionProvider

KEYS = {
    "TYPESAFE_API_KEY": "t",
    "OPENROUTER_KEY": "o",
    "CLOUDFLARE_API_TOKEN": "c",
    "CLOUDFLARE_ACCOUNT_ID": "acct",
    "OPENAI_API_KEY": "a",
}


@pytest.mark.parametrize(
    ("preset", "url", "model", "key"),
    [
        ("typesafe", "https://api.typesafe.ai/v1/systemone", "jev-latest", "t"),
        ("openrouter", "https://openrouter.ai/api/alpha/decisions", "~typesafe/jev-latest", "o"),
        (
            "cloudflare-clef",
            "https://api.cloudflare.com/client/v4/accounts/acct/ai/run/@cf/cloudflare/clef",
            "clef",
            "c",
        ),
        (
            "cloudflare-jev",
            "https://api.cloudflare.com/client/v4/accounts/acct/ai/run",
            "typesafe/jev",
            "c",
        ),
        ("openai-decisions", "https://api.openai.com/v1/decisions", "gpt-6-luna", "a"),
    ],
)
def test_a_preset_needs_nothing_but_its_key(preset: str, url: str, model: str, key: str) -> None:
    """Address and model come from the table, the key from its usual variable."""
    found = resolve("x", DecisionProvider.model_validate({"preset": preset}), KEYS)
    assert found is not None
    assert (found.url, found.model, found.api_key) == (url, model, key)


@pytest.mark.parametrize("preset", [name for name in PRESETS if name != "systemone"])
def test_without_its_key_a_preset_is_left_out(preset: str) -> None:
    """Which is no error: the rest of the gateway works."""
    assert resolve("x", DecisionProvider.model_validate({"preset": preset}), {}) is None


def test_any_url_needs_no_key() -> None:
    """A local server is reached with its address alone."""
    own = DecisionProvider(base_url="http://localhost:11434", model="laya")
    found = resolve("local", own, {})
    assert found is not None
    assert (found.url, found.api_key) == ("http://localhost:11434/v1/systemone", None)


def test_a_named_variable_must_be_set() -> None:
    """Whoever names one wants its key sent."""
    own = DecisionProvider(base_url="http://h", api_key_env="MINE")
    assert resolve("x", own, {}) is None
    found = resolve("x", own, {"MINE": "k"})
    assert found is not None
    assert found.api_key == "k"


def test_operators_keys_win() -> None:
    """LibreChat's Cloudflare block, field by field."""
    own = DecisionProvider.model_validate(
        {
            "preset": "cloudflare-jev",
            "baseURL": "https://gateway.test/ai/run",
            "model": "typesafe/jev-preview",
            "requestKey": "body",
            "responseKey": "data",
            "apiKeyEnv": "CLOUDFLARE_API_TOKEN",
        }
    )
    found = resolve("cloudflare", own, KEYS)
    assert found is not None
    assert (found.url, found.model) == ("https://gateway.test/ai/run", "typesafe/jev-preview")
    assert (found.profile.request_key, found.profile.response_key) == ("body", "data")


@pytest.mark.parametrize(
    ("own", "environ", "message"),
    [
        ({}, {}, "providers.x.base_url is required"),
        ({"base_url": "ftp://host"}, {}, "no http URL"),
        ({"preset": "cloudflare-clef"}, {"CLOUDFLARE_API_TOKEN": "c"}, "account is required"),
    ],
)
def test_unusable_addresses_are_errors_at_start(
    own: dict[str, str], environ: dict[str, str], message: str
) -> None:
    """One line that names the setting."""
    with pytest.raises(ConfigError, match=message):
        resolve("x", DecisionProvider.model_validate(own), environ)


@pytest.mark.parametrize(
    ("url", "dialect", "complete"),
    [
        ("http://h", "systemone", "http://h/v1/systemone"),
        ("http://h/", "openai", "http://h/v1/decisions"),
        ("http://h/v1", "openai", "http://h/v1/decisions"),
        ("http://h/inference/v1/", "systemone", "http://h/inference/v1/systemone"),
        ("http://h/custom", "systemone", "http://h/custom"),
    ],
)
def test_paths_are_completed_where_they_are_missing(
    url: str, dialect: Dialect, complete: str
) -> None:
    """A bare host and a `/v1` get the path of their dialect."""
    assert complete_path(url, dialect) == complete
