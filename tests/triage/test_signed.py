"""Signed reasoning in every form that reaches us."""

import orjson
import pytest

from proxy.triage.signed import family_of, is_signed, read_seals, scan_seals, strip_signed
from proxy.wire import JSONObject
from tests.triage.talk import said, step

SIGNATURE = "EqoBCkgIARABGAIiQL8"
FORMS: list[JSONObject] = [
    said("x", thinking_blocks=[{"type": "thinking", "thinking": "…", "signature": SIGNATURE}]),
    said("x", thinking_blocks=[{"type": "redacted_thinking", "data": SIGNATURE}]),
    said("x", reasoning_details=[{"type": "reasoning.encrypted", "data": SIGNATURE}]),
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "…", "signature": SIGNATURE},
        {"type": "text", "text": "x"},
    ]},
]  # fmt: skip


@pytest.mark.parametrize("message", FORMS)
def test_every_form_is_known_and_can_be_left_out(message: JSONObject) -> None:
    """The words stay, and a reply shows the same signature as the history does."""
    assert is_signed(message)
    bare = strip_signed(message)
    assert not is_signed(bare)
    assert "x" in orjson.dumps(bare["content"]).decode()
    assert set(read_seals(message)) == set(scan_seals(orjson.dumps(message)))


def test_a_thought_signature_of_a_call_stays() -> None:
    """Gemini wants it back, and it is bound to its call, not to the prefix."""
    call = step(1)[0]
    call["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": SIGNATURE}}
    assert strip_signed(call) is call


def test_reasoning_without_a_signature_stays() -> None:
    """Nothing about it can be invalid."""
    message = said("x", reasoning_content="Let me think.", thinking_blocks=[{"thinking": "…"}])
    assert strip_signed(message) is message


@pytest.mark.parametrize(("model", "family"), [
    ("claude-opus-4-5", "claude"), ("anthropic/claude-sonnet-4-5", "claude"), ("o3", ""),
    ("gpt-5", "gpt"), ("openrouter/google/gemini-2.5-pro", "gemini"), ("", ""),
])  # fmt: skip
def test_whose_signatures_a_model_understands(model: str, family: str) -> None:
    """By its name, since that is all there is."""
    assert family_of(model) == family
