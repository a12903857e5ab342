"""Which tools stay whole, and why."""

import orjson
import pytest

from proxy.settings import Deferral
from proxy.tools.defer import (
    cap_surfaced,
    find_mentions,
    is_worthwhile,
    matches,
    render_tools,
    split_tools,
)
from tests.tools.samples import catalogue, city_tools, function

_ALL = Deferral(small_chars=0)


@pytest.mark.item("catalog/fifteen-sixteen")
@pytest.mark.parametrize(("count", "worthwhile"), [(15, False), (16, True)])
def test_few_small_tools_are_not_worth_it(count: int, worthwhile: bool) -> None:
    """Below both thresholds the request is left alone."""
    assert is_worthwhile(catalogue(*[function("f")] * count), Deferral()) is worthwhile


def test_few_large_tools_are_worth_it() -> None:
    """A lot of schema is enough on its own."""
    assert is_worthwhile(catalogue(function("f", "x" * 24_000)), Deferral())


@pytest.mark.item("reported/forgotten-tools")
def test_reasons_to_stay() -> None:
    """Each tool that cannot or should not be deferred says why."""
    ambient, open_ended = function("ask_user"), function("open")
    open_ended["defer_loading"] = False
    cached = {**function("cached"), "cache_control": {"type": "ephemeral"}}
    found = catalogue(
        function("pinned_one"),
        {"type": "custom", "custom": {"name": "grammar"}},
        function("twice", "1"),
        function("twice", "2"),
        function("bad name!"),
        ambient,
        open_ended,
        cached,
        function("rest"),
    )
    split = split_tools(found, Deferral(small_chars=0, pin=("pinned_*",)))
    assert split.reasons == {
        "pinned_one": "pinned",
        "grammar": "kind",
        "twice": "conflict",
        "bad name!": "name",
        "ask_user": "ambient",
        "open": "client",
        "cached": "cache_control",
    }
    assert [tool.name for tool in split.deferrable] == ["rest"]
    assert len(split.eager) == 8


def test_small_tools_stay_while_the_budget_lasts() -> None:
    """Tiny schemas cost less than a search; a client's own mark or a pattern overrules that."""
    tools = [function(f"tool_{number}") for number in range(4)]
    tools[1]["defer_loading"] = True
    size = len(orjson.dumps(tools[0]))
    found = catalogue(*tools)
    split = split_tools(found, Deferral(eager_chars=2 * size))
    assert [tool.name for tool in split.eager] == ["tool_0", "tool_2"]
    split = split_tools(found, Deferral(defer=("tool_0",)))
    assert [tool.name for tool in split.deferrable] == ["tool_0", "tool_1"]


@pytest.mark.item("catalog/identical-duplicates")
def test_an_identical_repeat_is_sent_once() -> None:
    """The first copy stands for all."""
    split = split_tools(catalogue(function("a"), function("a")), _ALL)
    assert len(split.deferrable) == 1


def test_a_prompt_mentions_whole_names_only() -> None:
    """A name inside a longer word is not a mention."""
    tools = split_tools(catalogue(*city_tools()), _ALL).deferrable
    text = "Use mail_send (never mail_delete2) and my_weather_now."
    assert find_mentions(text, tools) == ["mail_send"]


def test_patterns_are_names_or_globs() -> None:
    """Case counts, as in tool names."""
    assert matches("mail_send", ("x", "mail_*"))
    assert not matches("Mail_send", ("mail_*",))


def test_tools_are_rendered_in_order() -> None:
    """Eager tools, ours, surfaced tools, all by their own bytes."""
    found = catalogue(*city_tools())
    raw = render_tools(found.tools[:1], [b'{"ours":1}'], found.tools[3:4])
    assert raw == b"[" + found.tools[0].raw + b',{"ours":1},' + found.tools[3].raw + b"]"


def test_the_cap_drops_uncalled_tools_in_one_batch() -> None:
    """Half of the limit leaves at once, oldest first, and called tools never do."""
    names = [f"t{number}" for number in range(5)]
    assert cap_surfaced(names, {"t0"}, 4) == ["t0", "t3", "t4"]
    assert cap_surfaced(names, set(names), 2) == names
    assert cap_surfaced(names, set(), 5) == names
