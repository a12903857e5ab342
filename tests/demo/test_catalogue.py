"""The demo's tools."""

import orjson

from proxy.demo.catalogue import load_tools
from proxy.tools.tokens import count_tokens


def test_there_are_235_tools_of_113941_tokens() -> None:
    """The figures that everything the project says about savings refers to."""
    tools = load_tools()
    assert len({tool["function"]["name"] for tool in tools}) == 235
    assert count_tokens(orjson.dumps(tools).decode()) == 113_941
