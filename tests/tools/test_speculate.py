"""A search in the model's name looks like one of its own."""

import orjson

from proxy.tools.speculate import write_search
from tests.tools.samples import city_tools, toolbox

_BOX = toolbox(*city_tools())


def test_it_finds_exactly_the_names() -> None:
    """The result carries their whole schemas, in the given order."""
    call, result = write_search(_BOX.index, ["mail_send", "weather_now"], "tool_search", "ab" * 16)
    assert call["tool_calls"][0]["id"] == result["tool_call_id"]
    loaded = orjson.loads(result["content"])["loaded"]
    assert [tool["name"] for tool in loaded] == ["mail_send", "weather_now"]
    assert loaded[0]["parameters"]["required"] == ["to"]


def test_the_same_moment_has_the_same_bytes() -> None:
    """Later requests put back what the first one had."""
    first = write_search(_BOX.index, ["mail_send"], "tool_search", "ab" * 16)
    assert write_search(_BOX.index, ["mail_send"], "tool_search", "ab" * 16) == first
    assert write_search(_BOX.index, ["mail_send"], "tool_search", "cd" * 16) != first
