"""Conversations through a running gateway, with the upstream's side recorded.

Recorded from the stand-in model (proxy/upstream/standin), never from a vendor: what they prove is
what the gateway sends and hands on, not what a vendor's model would say.
"""

from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

pytestmark = pytest.mark.anyio

THINGS = ("storage account", "virtual machine", "database", "secret", "calendar event")
ACTIONS = ("list", "create", "update", "delete")


def tool(name: str, description: str, *required: str) -> ChatCompletionToolParam:
    properties = {field: {"type": "string", "description": field} for field in required}
    parameters: dict[str, object] = {
        "type": "object",
        "properties": properties,
        "required": list(required),
    }
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


TOOLS = [
    *(
        tool(f"{action}_{thing.replace(' ', '_')}", f"{action.title()}s a {thing}.", "name")
        for thing in THINGS
        for action in ACTIONS
    ),
    tool("get_weather", "Current weather of a city.", "city"),
]


def user(text: str) -> ChatCompletionMessageParam:
    return {"role": "user", "content": text}


async def collect(stream: Any) -> tuple[str, list[tuple[str, str]], set[str]]:
    """A stream's text, its tool calls, and the ids and models that its chunks carried."""
    text = ""
    calls: dict[int, tuple[str, str]] = {}
    heads: set[str] = set()
    async for chunk in stream:
        heads |= {chunk.id, chunk.model}
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for part in choice.delta.tool_calls or []:
                name, arguments = calls.get(part.index, ("", ""))
                called = part.function
                calls[part.index] = (
                    name + (called.name or ""),
                    arguments + (called.arguments or ""),
                )
    assert list(calls) == list(range(len(calls)))
    return text, list(calls.values()), heads


async def test_plain_answer(client: AsyncOpenAI) -> None:
    """A question without tools is answered, and the usage is the model's."""
    reply = await client.chat.completions.create(
        model="standin", messages=[user("Wie heißt die Straße? 東京 🙂")]
    )
    assert "東京 🙂" in (reply.choices[0].message.content or "")
    assert reply.usage is not None
    assert reply.usage.prompt_tokens > 0


async def test_plain_stream(client: AsyncOpenAI) -> None:
    """The same as a stream: every character, however the bytes are cut."""
    stream = await client.chat.completions.create(
        model="standin", messages=[user("Wie heißt die Straße? 東京 🙂")], stream=True
    )
    text, calls, heads = await collect(stream)
    assert "Straße? 東京 🙂" in text
    assert calls == []
    assert len(heads) == 2


async def test_predicted_tool(client: AsyncOpenAI) -> None:
    """A request that says what it needs calls its tool in the first round."""
    reply = await client.chat.completions.with_raw_response.create(
        model="standin", messages=[user("Create a database")], tools=TOOLS
    )
    [call] = (reply.parse()).choices[0].message.tool_calls or []
    assert call.type == "function"
    assert call.function.name == "create_database"
    assert reply.headers["x-usher-rounds"] == "1"


async def test_predicted_tool_streamed(client: AsyncOpenAI) -> None:
    """The same as a stream."""
    stream = await client.chat.completions.create(
        model="standin",
        messages=[user("Create a database")],
        tools=TOOLS,
        stream=True,
    )
    _, calls, _ = await collect(stream)
    assert [name for name, _ in calls] == ["create_database"]


async def test_searched_tool(client: AsyncOpenAI) -> None:
    """A tool that was not predicted is found in a hidden round, then called, then answered."""
    messages = [user("東京の天気を教えて")]
    reply = await client.chat.completions.with_raw_response.create(
        model="standin", messages=messages, tools=TOOLS, extra_headers={"x-usher-predict": "off"}
    )
    message = (reply.parse()).choices[0].message
    [call] = message.tool_calls or []
    assert call.type == "function"
    assert call.function.name == "get_weather"
    assert reply.headers["x-usher-rounds"] == "2"
    messages += [
        message.model_dump(exclude_none=True),  # type: ignore[list-item]  # what the SDK sends back
        {"role": "tool", "tool_call_id": call.id, "content": '{"sky": "晴れ"}'},
    ]
    final = await client.chat.completions.create(model="standin", messages=messages, tools=TOOLS)
    assert "晴れ" in (final.choices[0].message.content or "")


async def test_searched_tool_streamed(client: AsyncOpenAI) -> None:
    """The hidden round leaves no trace in the stream: one id, one model, only the real call."""
    stream = await client.chat.completions.create(
        model="standin",
        messages=[user("東京の天気を教えて")],
        tools=TOOLS,
        stream=True,
        extra_headers={"x-usher-predict": "off"},
    )
    text, calls, heads = await collect(stream)
    assert [name for name, _ in calls] == ["get_weather"]
    assert text == ""
    assert len(heads) == 2


async def test_refusal(client: AsyncOpenAI) -> None:
    """The upstream's own error reaches the client with its status, type and parameter."""
    with pytest.raises(BadRequestError) as caught:
        await client.chat.completions.create(model="standin", messages=[])
    assert caught.value.param == "messages"


async def test_other_routes(client: AsyncOpenAI) -> None:
    """Models and embeddings pass through."""
    assert [model.id async for model in client.models.list()] == ["standin"]
    reply = await client.embeddings.create(model="standin", input=["ü", "日本"])
    assert [item.index for item in reply.data] == [0, 1]
