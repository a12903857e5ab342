"""The client's tools are read without losing a byte of them."""

import orjson
import pytest

from proxy.tools.catalog import digest_tools, read_catalogue
from tests.tools.samples import catalogue, function


@pytest.mark.item("catalog/key-order")
def test_tools_keep_their_bytes() -> None:
    """Key order, spacing and escapes of a tool go upstream as the client wrote them."""
    tool = b'{"function": {"parameters":{"b":1.0, "a":"\\u00e9"},"name":"f"}, "type":"function"}'
    found = read_catalogue(b"[ " + tool + b" ]")
    assert found is not None
    assert found.tools[0].raw == tool
    assert found.tools[0].parameters == b'{"b":1.0, "a":"\\u00e9"}'


@pytest.mark.parametrize(
    "raw",
    [
        b"[]", b"null", b"{}", b'"x"', b"[1]", b"[null]", b"[[]]", b'[{"type":"function"}]',
        b'[{"type":"function","function":null}]', b'[{"type":"function","function":{"name":3}}]',
        b'[{"type":3}]', b"[", b'[{"type":"function","function":[]}]',
    ],
)  # fmt: skip
def test_malformed_arrays_have_no_catalogue(raw: bytes) -> None:
    """The upstream shall produce its own error for them."""
    assert read_catalogue(raw) is None


@pytest.mark.item("params/custom-tools")
def test_other_kinds_are_carried_along() -> None:
    """Custom and vendor tools are known by kind and never taken apart."""
    found = catalogue(
        {"type": "custom", "custom": {"name": "c", "format": {"type": "text"}}},
        {"type": "openrouter:web_search", "parameters": {"max": 3}},
        function("f"),
    )
    assert [(tool.kind, tool.name) for tool in found.tools] == [
        ("custom", "c"), ("openrouter:web_search", ""), ("function", "f"),
    ]  # fmt: skip


def test_a_tool_without_type_is_a_function() -> None:
    """Some clients leave the type out and some upstreams accept that."""
    assert catalogue({"function": {"name": "f"}}).tools[0].kind == "function"


@pytest.mark.parametrize("place", ["tool", "function"])
def test_defer_loading_is_read_and_taken_off(place: str) -> None:
    """Servers without deferral refuse the mark, wherever the client put it."""
    tool = function("f", "d")
    (tool if place == "tool" else tool["function"])["defer_loading"] = True
    found = catalogue(tool).tools[0]
    assert found.defer_loading is True
    assert orjson.loads(found.raw) == function("f", "d")


@pytest.mark.item("catalog/identical-duplicates", "catalog/conflicting-duplicates")
def test_identical_repeats_and_conflicts_are_told_apart() -> None:
    """The same tool twice is one tool; two tools of one name are a conflict."""
    found = catalogue(function("a"), function("a"), function("b", "1"), function("b", "2"))
    assert found.repeated == {1}
    assert found.conflicting == {"b"}


@pytest.mark.parametrize("kind", ["tool_search", "orq:tool_search", "tool_search_tool_bm25_2025"])
def test_a_providers_own_deferral_is_recognised(kind: str) -> None:
    """Half of a provider's protocol must never be consumed here."""
    assert catalogue({"type": kind}, function("f")).native
    assert not catalogue(function("f")).native


@pytest.mark.item("catalog/description-edited", "catalog/shuffled")
def test_the_digest_covers_every_byte() -> None:
    """A changed description or order is another catalogue."""
    assert digest_tools(b"[1,2]") == digest_tools(memoryview(b"[1,2]"))
    assert digest_tools(b"[1,2]") != digest_tools(b"[2,1]")


def test_odd_fields_do_not_spoil_a_tool() -> None:
    """A description or schema of the wrong type counts as absent and stays in the bytes."""
    tool = {"type": "function", "function": {"name": "f", "description": 3, "parameters": True}}
    found = catalogue(tool).tools[0]
    assert (found.description, found.parameters) == ("", None)
    assert orjson.loads(found.raw) == tool


def test_tools_of_one_server_share_a_group() -> None:
    """The group is learned from the names."""
    found = catalogue(*(function(f"git__{verb}") for verb in ("log", "diff", "add")))
    assert {tool.group for tool in found.tools} == {"git"}
