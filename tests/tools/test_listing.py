"""Every deferred tool stays listed, in as much detail as fits."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.tools.document import Document
from proxy.tools.group import learn_groups
from proxy.tools.listing import PURPOSE, render_listing, search_tool
from proxy.tools.tokens import count_tokens


def _documents(*names: str, required: tuple[str, ...] = ()) -> list[Document]:
    schema = orjson.dumps({"type": "object", "required": list(required)})
    groups = learn_groups(names)
    return [Document(n, g, "", schema) for n, g in zip(names, groups, strict=True)]


NAMES = ("kv_key_get", "kv_key_set", "kv_secret_get", "ping")


def test_small_catalogues_show_required_parameters() -> None:
    """With room to spare a model can call a listed tool without searching."""
    text = render_listing(_documents(*NAMES, required=("vault",)), 1_000, count_tokens)
    assert text == "kv_*: key_get(vault), key_set(vault), secret_get(vault)\nother: ping(vault)"


def test_larger_ones_show_names() -> None:
    """Where signatures do not fit, the names still do."""
    text = render_listing(_documents(*NAMES, required=("vault",) * 9), 30, count_tokens)
    assert text == "kv_*: key_get, key_set, secret_get\nother: ping"


def test_the_largest_show_sizes_for_what_does_not_fit() -> None:
    """Small groups keep their names; of the others the number of tools is stated."""
    names = [f"big__a_rather_long_tool_name_{n}" for n in range(50)]
    documents = _documents(*names, "kv__get", "kv__set")
    text = render_listing(documents, 40, count_tokens)
    assert text == "big__* (50 tools)\nkv__*: get, set"
    assert count_tokens(text) <= 40


def test_servers_behind_the_tool_keep_their_place() -> None:
    """LibreChat's `<tool>_mcp_<server>` is listed so that the full name can be rebuilt."""
    documents = _documents("list_mcp_github", "read_mcp_github")
    assert render_listing(documents, 1_000, count_tokens) == "*_mcp_github: list(), read()"


def test_no_tools_no_text() -> None:
    """An empty catalogue has an empty listing."""
    assert render_listing([], 100, count_tokens) == ""


def test_the_search_tool_is_short_valid_and_constant() -> None:
    """Its bytes are a cacheable prefix, its own words cost little."""
    raw = search_tool("tool_search", "kv_*: get")
    function = orjson.loads(raw)["function"]
    assert raw == search_tool("tool_search", "kv_*: get")
    assert function["name"] == "tool_search"
    assert function["description"].endswith("\nkv_*: get")
    assert count_tokens(PURPOSE) <= 120


@given(st.lists(st.from_regex(r"[a-z]{1,4}(__|_)[a-z]{1,6}", fullmatch=True), unique=True))
@pytest.mark.item("reported/only-a-count")
def test_every_full_name_can_be_rebuilt(names: list[str]) -> None:
    """Whatever the names, the listing spells out each of them."""
    listed = set()
    for line in render_listing(_documents(*names), 100_000, count_tokens).splitlines():
        pattern, _, tools = line.partition(": ")
        for tool in tools.split(", "):
            local = tool.removesuffix("()")
            listed.add(local if pattern == "other" else pattern.replace("*", local))
    assert listed == set(names)


def test_long_shared_beginnings_are_named_once() -> None:
    """Four tools of one resource need not repeat its name."""
    names = [f"fs_share_snapshot_{verb}" for verb in ("get", "create", "delete", "update")]
    text = render_listing(_documents(*names, "fs_limits", "fs_usage"), 1_000, count_tokens)
    assert text == (
        "fs_*: limits(), usage()\nfs_share_snapshot_*: get(), create(), delete(), update()"
    )
