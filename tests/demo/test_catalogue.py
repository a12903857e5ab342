"""The demo's tools."""

from pathlib import Path

import orjson
import pytest

from proxy.demo.catalogue import load_large, load_tools, read_tools
from proxy.errors import ConfigError
from proxy.tools.tokens import count_tokens


def test_there_are_235_tools_of_113941_tokens() -> None:
    """The figures that everything the project says about savings refers to."""
    tools = load_tools()
    assert len({tool["function"]["name"] for tool in tools}) == 235
    assert count_tokens(orjson.dumps(tools).decode()) == 113_941


def test_the_large_catalogue_has_879_tools_of_229951_tokens() -> None:
    """Those of the small one come first, and no name comes twice."""
    tools = load_large()
    assert len({tool["function"]["name"] for tool in tools}) == 879
    assert tools[:235] == load_tools()
    assert count_tokens(orjson.dumps(tools).decode()) == 229_951


@pytest.mark.parametrize("inside", [False, True])
def test_a_file_may_hold_tools_or_a_request(tmp_path: Path, *, inside: bool) -> None:
    """Whatever an operator has at hand."""
    tools = load_tools()[:3]
    (tmp_path / "mine.json").write_bytes(orjson.dumps({"tools": tools} if inside else tools))
    assert read_tools(tmp_path / "mine.json") == tools


@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"tools": 1}', b'[{"type": "custom"}]'])
def test_a_file_without_tools_is_one_clear_error(tmp_path: Path, content: bytes | None) -> None:
    """Missing, broken, empty or something else."""
    path = tmp_path / "mine.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"mine\.json"):
        read_tools(path)
