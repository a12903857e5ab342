"""The demo's prompts."""

from proxy.demo.catalogue import load_tools
from proxy.demo.scenario import PROMPTS


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
