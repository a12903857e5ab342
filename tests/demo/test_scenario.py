"""The demo's prompts."""

from proxy.demo.catalogue import load_large, load_tools
from proxy.demo.scenario import LARGE_PROMPTS, PROMPTS, fit_prompts


def test_every_expected_tool_exists() -> None:
    """Or the demo could never succeed."""
    names = {tool["function"]["name"] for tool in load_tools()}
    assert {prompt.expected for prompt in PROMPTS} - {None} <= names


def test_the_kinds_of_prompts_that_matter_are_there() -> None:
    """A tool, another one later on, small talk, another language, one that must be searched."""
    assert any(prompt.follows for prompt in PROMPTS)
    assert any(prompt.expected is None and prompt.earlier for prompt in PROMPTS)
    assert any(not prompt.text.isascii() for prompt in PROMPTS)
    assert any(prompt.headers.get("x-usher-predict") == "off" for prompt in PROMPTS)
    assert not PROMPTS[0].follows


def test_prompts_fit_the_catalogue_of_an_operator() -> None:
    """The demo's own where they do; each of another's tools is asked for in its own words."""
    large = load_large()
    assert {prompt.expected for prompt in LARGE_PROMPTS} - {None} <= {
        prompt.expected for prompt in fit_prompts(large)
    }
    strange = [
        {"type": "function", "function": {"name": "a_b", "description": "Folds maps. Slowly."}},
        {"type": "function", "function": {"name": "c_d"}},
    ]
    assert [(own.text, own.expected) for own in fit_prompts(strange)] == [("Folds maps", "a_b")]
