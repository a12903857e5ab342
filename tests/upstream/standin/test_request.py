"""Reading a chat request as the stand-in model does."""

import json

from proxy.upstream.standin.request import read_request, text_of
from proxy.wire import JSON, JSONObject

LISTING = """Loads tools.
storage_*: blob_get(account, container), table_list(account)
big_* (40 tools)
other: ping"""


def _function(name: str, *properties: str, description: str = "") -> JSONObject:
    schema = {"type": "object", "properties": {key: {} for key in properties}}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


def _called(*names: str, **arguments: JSON) -> JSONObject:
    raw = json.dumps(arguments)
    calls = [
        {"id": name, "type": "function", "function": {"name": name, "arguments": raw}}
        for name in names
    ]
    return {"role": "assistant", "tool_calls": calls}


def _result(name: str, content: JSON) -> JSONObject:
    return {"role": "tool", "tool_call_id": name, "content": content}


SEARCH = _function("tool_search", "queries", description=LISTING)
ASK: JSONObject = {"role": "user", "content": "hi"}


def test_the_listing_gives_back_whole_names() -> None:
    """Signatures and patterns are undone; groups of which only the size is known give none."""
    asked = read_request({"messages": [ASK], "tools": [SEARCH]})
    assert asked.listed == ("storage_blob_get", "storage_table_list", "ping")


def test_the_search_tool_is_no_tool_for_the_task() -> None:
    """It is known by its name, or by asking for `queries` and nothing else."""
    renamed = _function("seek")
    renamed["function"]["parameters"]["required"] = ["queries"]
    for search in (SEARCH, _function("find_tools"), _function("tool_search_ab12"), renamed):
        asked = read_request({"messages": [ASK], "tools": [search, _function("ping")]})
        assert asked.search
        assert [offer.name for offer in asked.offers] == ["ping"]


def test_only_the_newest_turn_counts() -> None:
    """Calls before the newest user message are history."""
    messages = [ASK, _called("old"), _result("old", "1"), ASK, _called("new"), _result("new", "2")]
    history = read_request({"messages": messages}).history
    assert (history.called, history.results) == (("new",), (("new", "2"),))


def test_a_search_is_remembered_until_a_real_result_arrives() -> None:
    """So that each step of a task may search once."""
    after_search = [ASK, _called("tool_search"), _result("tool_search", "{}")]
    after_call = [*after_search, _called("ping"), _result("ping", "pong")]
    assert read_request({"messages": after_search}).history.searched
    assert not read_request({"messages": after_call}).history.searched


def test_allowed_tools_hide_the_others() -> None:
    """As a model under that choice would not call them."""
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "ping"}}]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    tools = [_function("ping"), _function("pong")]
    asked = read_request({"messages": [ASK], "tools": tools, "tool_choice": choice})
    assert [offer.name for offer in asked.offers] == ["ping"]


def test_schemas_in_a_search_result_become_offers_when_there_is_a_bridge() -> None:
    """The frozen delivery puts them there and declares `call_tool` instead."""
    bridge = _function("call_tool", "name", "arguments")
    loaded = {"loaded": [{"name": "storage_table_list", "parameters": {"type": "object"}}]}
    messages = [ASK, _called("tool_search"), _result("tool_search", json.dumps(loaded))]
    asked = read_request({"messages": messages, "tools": [SEARCH, bridge]})
    assert asked.bridge
    assert [offer.name for offer in asked.offers] == ["storage_table_list"]


def test_a_result_that_is_no_json_loads_nothing() -> None:
    """Nor do entries without a schema, tools that are there already, or tools of other kinds."""
    bridge = _function("call_tool", "name", "arguments")
    known = {"name": "ping", "parameters": {}}
    loaded = json.dumps({"loaded": [{"name": "x"}, known]})
    messages = [ASK, _called("a", "b"), _result("a", "gone"), _result("b", loaded)]
    tools = [SEARCH, bridge, _function("ping"), {"type": "custom", "custom": {"name": "c"}}]
    asked = read_request({"messages": messages, "tools": tools})
    assert [offer.name for offer in asked.offers] == ["ping"]


def test_a_call_through_the_bridge_counts_as_the_tool_itself() -> None:
    """Its name is inside the arguments."""
    messages = [ASK, _called("call_tool", name="ping", arguments={}), _result("call_tool", "pong")]
    assert read_request({"messages": messages}).history.called == ("ping",)


def test_content_may_be_parts() -> None:
    """Only their text is read."""
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    assert text_of([{"type": "text", "text": "a"}, image, {"type": "text", "text": "b"}]) == "a\nb"
    assert text_of(None) == ""


def test_a_response_format_says_which_json_is_wanted() -> None:
    """A schema, any object, or no JSON at all."""
    schema = {"type": "object"}
    wanted = [
        read_request({"messages": [ASK], "response_format": value}).schema
        for value in (
            {"type": "json_schema", "json_schema": {"schema": schema}},
            {"type": "json_object"},
            {"type": "text"},
        )
    ]
    assert wanted == [schema, {}, None]


def test_a_conversation_without_a_user_is_read_too() -> None:
    """There is just nothing wanted."""
    assert read_request({"messages": [{"role": "system", "content": "x"}]}).history.text == ""
