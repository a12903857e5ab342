"""Which parameters a model is sent."""

import pytest

from proxy.memory.ability import Ability, ability_of, merge_system, refused_parameter

BODY = {"model": "m", "messages": [], "temperature": 0.4, "max_tokens": 300}


@pytest.mark.parametrize("model", ["gpt-5", "openai/gpt-5.5-mini", "o3", "gpt-6-luna"])
def test_reasoning_models(model: str) -> None:
    """No temperature, and the limit under its newer name."""
    assert ability_of(model).fit(BODY) == {
        "model": "m",
        "messages": [],
        "max_completion_tokens": 300,
    }


@pytest.mark.parametrize("model", ["gpt-4.1-mini", "claude-haiku-5-5", "llama3", "gpt-4o"])
def test_other_models(model: str) -> None:
    """The usual names."""
    assert ability_of(model).fit(BODY) == BODY


def test_thinking_takes_no_temperature() -> None:
    """Anthropic refuses both together."""
    fitted = Ability().fit({**BODY, "thinking": {"type": "enabled"}})
    assert "temperature" not in fitted


def test_a_400_that_names_a_parameter() -> None:
    """It is left out next time; a limit gets its other name first."""
    named = refused_parameter({"error": {"message": "no", "param": "temperature"}}, BODY)
    assert named == "temperature"
    told = {"error": {"message": "Unsupported parameter: 'max_tokens' is not supported"}}
    assert refused_parameter(told, BODY) == "max_tokens"
    ability = Ability().without("max_tokens")
    assert "max_completion_tokens" in ability.fit(BODY)
    assert "temperature" not in ability.without("temperature").fit(BODY)
    assert refused_parameter({"error": {"message": "the model is gone"}}, BODY) is None
    assert refused_parameter("nonsense", BODY) is None


def test_models_that_begin_with_a_user_message() -> None:
    """Instructions are merged into it."""
    messages = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
    assert ability_of("bedrock/amazon.titan").user_first
    assert merge_system(messages) == [{"role": "user", "content": "a\n\nb"}]
    assert merge_system(messages[1:]) == messages[1:]
