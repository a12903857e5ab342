"""What the stand-in model does."""

import json

import pytest

from proxy.upstream.standin.model import Said, answer
from proxy.wire import JSON, JSONObject

LISTING = "Loads tools.\nstorage_*: blob_get(account), blob_delete(blob)\nemail_*: send(to)"


def _function(name: str, description: str, /, **properties: JSON) -> JSONObject:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


WEATHER = _function("get_weather", "Get the weather of a city.", city={"type": "string"})
BLOBS = _function("storage_blob_get", "List the blobs of a container.")
DELETE = _function("storage_blob_delete", "Delete a blob.", blob={"type": "string"})
EMAIL = _function("email_send", "Send an email.", to={"type": "string"})
SEARCH = _function("tool_search", LISTING, queries={"type": "array"})


def _ask(text: str, *tools: JSONObject, **more: JSON) -> JSONObject:
    return {"messages": [{"role": "user", "content": text}], "tools": list(tools), **more}


def _answered(body: JSONObject, said: Said, *results: str) -> JSONObject:
    """The request that follows when every call got a result."""
    calls = [
        {"id": str(i), "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
        for i, c in enumerate(said.calls)
    ]
    tools = [
        {"role": "tool", "tool_call_id": str(i), "content": text} for i, text in enumerate(results)
    ]
    messages = [*body["messages"], {"role": "assistant", "tool_calls": calls}, *tools]
    return {**body, "messages": messages}


def _names(said: Said) -> list[str]:
    return [call.name for call in said.calls]


def test_a_fitting_tool_is_called_with_arguments_from_the_message() -> None:
    """The plain case."""
    said = answer(_ask("What is the weather in Paris?", BLOBS, WEATHER))
    assert _names(said) == ["get_weather"]
    assert json.loads(said.calls[0].arguments) == {"city": "Paris"}


def test_after_the_result_it_answers_with_the_result() -> None:
    """And calls nothing again."""
    body = _ask("What is the weather in Paris?", WEATHER)
    said = answer(_answered(body, answer(body), "21 degrees"))
    assert (said.text, said.calls) == ("get_weather returned: 21 degrees", ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("thanks, that was really helpful", "You are welcome."),
        ("I like green tea", "You said: I like green tea"),
    ],
)
def test_small_talk_is_answered_in_text(text: str, expected: str) -> None:
    """Neither called for a tool nor for a search."""
    assert answer(_ask(text, WEATHER, SEARCH)).text == expected


def test_it_searches_when_no_loaded_tool_fits() -> None:
    """With keywords of its own and those of the listing."""
    said = answer(_ask("Please drop the blob a.txt", WEATHER, SEARCH))
    assert _names(said) == ["tool_search"]
    assert json.loads(said.calls[0].arguments) == {"queries": ["drop blob txt storage"]}


def test_it_searches_in_english_for_a_japanese_request() -> None:
    """Because the listing is in English."""
    said = answer(_ask("ストレージのブロブを削除して", WEATHER, SEARCH))
    assert json.loads(said.calls[0].arguments) == {"queries": ["storage blob delete"]}


def test_it_searches_when_the_listing_names_something_better() -> None:
    """A loaded neighbour does not keep it from the right tool."""
    assert _names(answer(_ask("delete blob a.txt", BLOBS, SEARCH))) == ["tool_search"]


def test_it_calls_what_the_search_has_loaded() -> None:
    """The found tool is declared in the next request."""
    body = _ask("Please drop the blob a.txt", WEATHER, SEARCH)
    body = _answered(body, answer(body), '{"loaded":[{"name":"storage_blob_delete"}]}')
    body["tools"] = [WEATHER, SEARCH, DELETE]
    assert _names(answer(body)) == ["storage_blob_delete"]


def test_it_gives_up_after_a_search_without_luck() -> None:
    """One search per step, then text."""
    body = _ask("Please drop the blob a.txt", WEATHER, SEARCH)
    said = answer(_answered(body, answer(body), '{"loaded":[]}'))
    assert said.text == "You said: Please drop the blob a.txt"


def test_and_also_makes_parallel_calls() -> None:
    """In the order of the message, or one by one when the request forbids parallel calls."""
    text = "Show the weather in Paris and also delete blob a.txt"
    assert _names(answer(_ask(text, DELETE, WEATHER))) == ["get_weather", "storage_blob_delete"]
    one = _ask(text, DELETE, WEATHER, parallel_tool_calls=False)
    said = answer(one)
    assert _names(said) == ["get_weather"]
    assert _names(answer(_answered(one, said, "21"))) == ["storage_blob_delete"]


def test_then_makes_one_call_after_the_other() -> None:
    """Each step waits for the result before it; the answer repeats all results."""
    first = _ask("Show the weather in Paris, then delete blob a.txt", DELETE, WEATHER)
    second = _answered(first, answer(first), "21")
    third = _answered(second, answer(second), "gone")
    names = [_names(answer(body)) for body in (first, second, third)]
    assert names == [["get_weather"], ["storage_blob_delete"], []]
    assert answer(third).text == "get_weather returned: 21\nstorage_blob_delete returned: gone"


def test_a_call_that_the_message_did_not_ask_for_counts_for_nothing() -> None:
    """Another client's history may hold one."""
    body = _ask("Show the weather in Paris", WEATHER)
    stray = answer(_ask("delete blob a.txt", DELETE))
    assert _names(answer(_answered(body, stray, "gone"))) == ["get_weather"]


def test_a_second_step_may_search_again() -> None:
    """The search before the first step does not count."""
    body = _ask("Show the weather in Paris, then send an email to a@b.example", WEATHER, SEARCH)
    said = answer(_answered(body, answer(body), "21"))
    assert _names(said) == ["tool_search"]


def test_the_same_tool_is_chosen_whatever_else_is_declared() -> None:
    """All tools or a few of them: same call, same arguments."""
    text = "send an email to a@b.example"
    assert answer(_ask(text, EMAIL)) == answer(_ask(text, WEATHER, BLOBS, DELETE, EMAIL, SEARCH))


def test_tool_choice_is_honoured() -> None:
    """none, a named function, the search tool by name, required."""
    named = {"type": "function", "function": {"name": "email_send"}}
    search = {"type": "function", "function": {"name": "tool_search"}}
    text = "weather in Paris"

    def choose(choice: JSON, *tools: JSONObject) -> list[str]:
        return _names(answer(_ask(text, *tools, tool_choice=choice)))

    assert choose("none", WEATHER) == []
    assert choose(named, WEATHER, EMAIL) == ["email_send"]
    assert choose(search, WEATHER, SEARCH) == ["tool_search"]
    assert choose("required", EMAIL, SEARCH) == ["tool_search"]
    assert choose("required", EMAIL) == ["email_send"]
    assert choose("required") == []


def test_a_found_tool_is_called_through_the_bridge_when_there_is_one() -> None:
    """The frozen delivery: nothing new is declared."""
    bridge = _function("call_tool", "Call a tool.", name={}, arguments={})
    body = _ask("Please drop the blob a.txt", SEARCH, bridge)
    loaded = {"loaded": [{"name": "storage_blob_delete", **DELETE["function"]}]}
    said = answer(_answered(body, answer(body), json.dumps(loaded)))
    arguments = json.loads(said.calls[0].arguments)
    assert (said.calls[0].name, arguments["name"]) == ("call_tool", "storage_blob_delete")


def test_a_wanted_schema_shapes_the_answer() -> None:
    """Structured output is valid by its schema."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert answer(_ask("give me 4", response_format=form)).text == '{"n":4}'


def test_a_conversation_of_endless_calls_ends() -> None:
    """After many calls in one turn it answers in text, whatever is asked."""
    body = _ask("weather in Paris", WEATHER)
    for _ in range(16):
        body = _answered(body, answer(_ask("weather in Paris", WEATHER)), "x")
    assert answer({**body, "tool_choice": "required"}).calls == ()
