"""Which searches ended in which calls is read from the hidden messages of a turn."""

import orjson

from proxy.tools.search import parse_arguments, search
from proxy.tools.sought import Searched, Use, find_uses, read_searches
from proxy.wire import JSONObject
from tests.tools.samples import city_tools, toolbox

BOX = toolbox(*city_tools())


def hidden(*queries: str, call_id: str = "s1", limit: int = 3) -> list[JSONObject]:
    """A search round as the desk parks it."""
    arguments = orjson.dumps({"queries": queries}).decode()
    found = search(
        BOX.index,
        parse_arguments(arguments),
        loaded=(),
        asked=set(),
        limit=limit,
        max_new=limit,
        schemas=False,
    )
    function = {"name": BOX.search_name, "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": found.text},
    ]


def test_a_search_that_ended_in_a_call_is_a_use() -> None:
    """The query, the tool, and what else was shown."""
    (use,) = find_uses(hidden("storm weather"), BOX.search_name, ["weather_alerts"], BOX.index)
    assert (use.query, use.tool) == ("storm weather", "weather_alerts")
    assert set(use.others) == {"weather_now", "weather_forecast"}


def test_a_call_of_a_tool_that_was_not_shown_teaches_nothing() -> None:
    """The model knew it from elsewhere."""
    assert find_uses(hidden("storm weather"), BOX.search_name, ["mail_send"], BOX.index) == []


def test_several_queries_of_one_search_are_told_apart() -> None:
    """Each tool belongs to the query that ranks it best."""
    messages = hidden("storm warnings", "send an e-mail", "zebra")
    called = ["mail_send", "weather_alerts", "mail_send"]
    assert [
        (use.query, use.tool) for use in find_uses(messages, "tool_search", called, BOX.index)
    ] == [
        ("send an e-mail", "mail_send"),
        ("storm warnings", "weather_alerts"),
    ]


def test_the_first_search_that_showed_a_tool_counts() -> None:
    """A later one that found it loaded already was about something else."""
    later = hidden("mailbox and storm", call_id="s2")
    uses = find_uses([*hidden("storm"), *later], "tool_search", ["weather_alerts"], BOX.index)
    assert uses == [Use("storm", "weather_alerts", uses[0].others)]


def test_names_and_patterns_teach_nothing() -> None:
    """They are no words that anybody would ask in."""
    for query in ("select:mail_send", "/mail.*/"):
        assert list(read_searches(hidden(query), "tool_search")) == []


def test_other_messages_are_passed_over() -> None:
    """Repairs, calls of no function and searches that were not answered."""
    custom: JSONObject = {"id": "x", "type": "custom", "custom": {"name": "tool_search"}}
    repair: JSONObject = {"id": "y", "function": {"name": "mail_send", "arguments": "{}"}}
    silent = hidden("storm")
    silent[1]["content"] = ""
    messages: list[JSONObject] = [
        {"role": "assistant", "tool_calls": [custom, repair]},
        {"role": "tool", "tool_call_id": "y", "content": "no such field"},
        *silent,
    ]
    assert list(read_searches(messages, "tool_search")) == []


def test_tools_that_were_loaded_already_are_shown_too() -> None:
    """Finding one again is finding it."""
    messages = hidden("storm")
    messages[1]["content"] = '{"loaded":[{"name":"a"}],"already_loaded":["b"]}'
    assert list(read_searches(messages, "tool_search")) == [Searched(("storm",), ("a", "b"))]
