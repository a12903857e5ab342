"""The usage that the stand-in reports."""

import pytest

from proxy.tools.tokens import count_tokens
from proxy.upstream.standin import meter as meter_module
from proxy.upstream.standin.meter import MIN_CACHED, Meter
from proxy.wire import JSONObject

LONG: JSONObject = {"role": "user", "content": " ".join(f"word{i}" for i in range(1500))}
SAID: JSONObject = {"role": "assistant", "content": "fine"}


def _body(*messages: JSONObject) -> JSONObject:
    return {"messages": list(messages)}


def test_tokens_are_counted_with_the_real_vocabulary() -> None:
    """The prompt's, the answer's and their sum."""
    usage = Meter().measure(_body({"role": "user", "content": "hi"}), SAID)
    assert usage["prompt_tokens"] == count_tokens('{"role":"user","content":"hi"}')
    assert usage["completion_tokens"] == 1
    assert usage["total_tokens"] == usage["prompt_tokens"] + 1


def test_tools_count_as_prompt() -> None:
    """They are what the product is about."""
    tool = {"type": "function", "function": {"name": "ping"}}
    bare = Meter().measure(_body(LONG), SAID)["prompt_tokens"]
    with_tools = Meter().measure({**_body(LONG), "tools": [tool]}, SAID)["prompt_tokens"]
    assert with_tools > bare


def test_calls_count_as_completion() -> None:
    """Names, ids and arguments."""
    calls = [{"id": "1", "type": "function", "function": {"name": "a", "arguments": "{}"}}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    assert Meter().measure(_body(LONG), message)["completion_tokens"] > 10


def test_a_repeated_prefix_is_reported_as_cached() -> None:
    """From the second time on, up to where the prompts differ."""
    meter = Meter(cache=True)
    first = meter.measure(_body(LONG), SAID)["prompt_tokens_details"]["cached_tokens"]
    usage = meter.measure(_body(LONG, SAID, LONG), SAID)
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    assert first == 0
    assert MIN_CACHED < cached < usage["prompt_tokens"] / 2 + 10


def test_a_changed_beginning_is_not_cached() -> None:
    """Whatever follows it."""
    meter = Meter(cache=True)
    meter.measure(_body(LONG), SAID)
    usage = meter.measure(_body(SAID, LONG), SAID)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 0


def test_old_prompts_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory for them is bounded."""
    monkeypatch.setattr(meter_module, "MAX_BLOCKS", 1)
    meter = Meter(cache=True)
    usages = [meter.measure(_body(LONG), SAID) for _ in range(2)]
    assert usages[1]["prompt_tokens_details"]["cached_tokens"] == 0


def test_short_prompts_are_never_cached() -> None:
    """As with OpenAI, below 1,024 tokens."""
    meter, body = Meter(cache=True), _body({"role": "user", "content": "word " * 600})
    usages = [meter.measure(body, SAID) for _ in range(2)]
    assert usages[1]["prompt_tokens_details"]["cached_tokens"] == 0
