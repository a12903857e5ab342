"""Settings of judgments, ours and in LibreChat's spelling."""

from typing import Any

import pytest
from pydantic import ValidationError

from proxy.judge_settings import Classification, snake

LIBRECHAT: dict[str, Any] = {
    "enabled": True,
    "provider": "http",
    "providers": {
        "http": {
            "baseURL": "https://judge.test/v1/systemone",
            "model": "jev-latest",
            "dialect": "systemone",
            "requestKey": "input",
            "responseKey": "result",
            "apiKeyEnv": "CLASSIFIER_API_KEY",
            "timeoutMs": 9000,
            "maxRetries": 1,
        }
    },
    "toolSelection": {
        "enabled": True,
        "shortlist": 5,
        "maxCatalogTools": 200,
        "needsToolThreshold": 0.2,
        "minProbability": 0.1,
        "lowConfidenceBelow": 0.5,
        "lowConfidenceExtra": 2,
        "surfaceNamedTools": False,
        "descriptionChars": 100,
        "timeoutMs": 4000,
    },
    "memoryGate": {
        "enabled": True,
        "threshold": 0.5,
        "categorize": True,
        "categoryThreshold": 0.6,
        "detectUpdates": False,
        "timeoutMs": 1500,
    },
}


def test_librechats_block_can_be_pasted() -> None:
    """Every key of it lands where it belongs."""
    found = Classification.model_validate(LIBRECHAT)
    assert found.backend == "http"
    provider = found.providers["http"]
    assert provider.base_url == "https://judge.test/v1/systemone"
    assert (provider.request_key, provider.response_key) == ("input", "result")
    assert (provider.timeout_ms, provider.max_retries) == (9000, 1)
    tools = found.tool_selection
    assert (tools.max_options, tools.needs_tool_below, tools.surface_named) == (200, 0.2, False)
    assert (tools.low_confidence_below, tools.low_confidence_extra) == (0.5, 2)
    assert found.memory_gate.category_threshold == 0.6
    assert not found.memory_gate.detect_updates


def test_a_provider_named_like_a_preset_starts_from_it() -> None:
    """Unless it names one itself."""
    own = {"cloudflare": {}, "openrouter": {"preset": "typesafe"}, "mine": {"base_url": "http://h"}}
    found = Classification.model_validate({"providers": own}).providers
    assert found["cloudflare"].preset == "cloudflare-jev"
    assert found["openrouter"].preset == "typesafe"
    assert found["mine"].preset == "systemone"


@pytest.mark.parametrize(
    "broken",
    [
        {"toolSelections": {}},
        {"toolSelection": {"shortlst": 5}},
        {"providers": {"x": {"dialect": "port"}}},
        {"providers": []},
        {"providers": {"x": "typesafe"}},
        {"memoryGate": {"threshold": 7}},
        "text",
    ],
)
def test_misspelt_keys_and_impossible_values_are_errors(broken: Any) -> None:
    """Nothing is silently ignored."""
    with pytest.raises(ValidationError):
        Classification.model_validate(broken)


def test_spelling() -> None:
    """Camel case becomes ours; what has another name there has it translated."""
    assert snake("requestKey") == "request_key"
    assert snake("baseURL") == "base_url"
    assert snake("shortlist") == "shortlist"


def test_everything_remote_is_off_until_switched_on() -> None:
    """The defaults of the design."""
    found = Classification()
    assert not found.enabled
    assert not found.tool_selection.enabled
    assert (found.tool_selection.shortlist, found.tool_selection.max_options) == (5, 64)
    assert found.breaker_failures == 3
