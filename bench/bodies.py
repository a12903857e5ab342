"""Nothing comes in; the request bodies that are measured go out, the same bytes every time."""

import random
from collections.abc import Callable, Container, Mapping
from pathlib import Path

import orjson

from proxy.demo.catalogue import load_tools
from proxy.wire import JSON, JSONObject

ASK = "Find the open issues assigned to me and post a summary to the team channel."
LARGE_BYTES = 850_000
SMALL_TOOL_BYTES = 900


def write_bodies(folder: Path, only: Container[str] | None = None) -> dict[str, Path]:
    """Write each body to a file, or only those named; the name says what is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    bodies: Mapping[str, Callable[[], JSONObject]] = {
        "small": lambda: _chat("Hello, how are you?"),
        "stream": lambda: _chat("Hello, how are you?", stream=True),
        "paced": lambda: _chat("Tell me, pace=10000 events=100.", stream=True),
        "idle": lambda: _chat("Tell me, pace=1000000 events=8.", stream=True),
        "long": lambda: {"model": "gpt-4o-mini", "messages": history(200), "tools": load_tools()},
        "real": lambda: _chat(ASK, tools=load_tools()),
        "real_stream": lambda: _chat(ASK, tools=load_tools(), stream=True),
        "real_paced": lambda: _chat(
            f"{ASK} pace=10000 events=100", tools=load_tools(), stream=True
        ),
        "large": lambda: _chat(ASK, tools=large_tools()),
        "ten_thousand": lambda: _chat(ASK, tools=many_tools(10_000)),
    }
    paths = {}
    for name, make in bodies.items():
        if only is not None and name not in only:
            continue
        paths[name] = folder / f"{name}.json"
        paths[name].write_bytes(orjson.dumps(make()))
    return paths


def history(messages: int) -> list[JSON]:
    """A conversation about nothing in particular, with a tool call every fourth message."""
    said: list[JSON] = [{"role": "system", "content": "You are a helpful assistant."}]
    for number in range(messages):
        match number % 4:
            case 0:
                said.append({"role": "user", "content": f"{ASK} ({number})"})
            case 1:
                call = {"name": "lookup", "arguments": f'{{"number":{number}}}'}
                said.append(
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {"id": f"call_{number}", "type": "function", "function": call}
                        ],
                    }
                )
            case 2:
                result = {"role": "tool", "tool_call_id": f"call_{number - 1}"}
                said.append({**result, "content": "Nothing was found under that number. " * 8})
            case _:
                said.append({"role": "assistant", "content": f"There is nothing, {number}. " * 6})
    said.append({"role": "user", "content": ASK})
    return said


def large_tools() -> list[JSONObject]:
    """202 tools of 850 KB together: real ones, their descriptions made longer with each other's."""
    tools = load_tools()[:202]
    texts = [tool["function"]["description"] for tool in tools]
    missing = LARGE_BYTES - len(orjson.dumps(tools))
    for number, tool in enumerate(tools):
        share, more = missing // len(tools), ""
        while len(more) < share:
            number += 7  # noqa: PLW2901 - the next text
            more += " " + texts[number % len(texts)]
        tool["function"]["description"] += more[:share]
    return tools


def many_tools(count: int) -> list[JSONObject]:
    """Tools of about 900 bytes, as many as wanted: real ones under other names, cut short."""
    real, dice = load_tools(), random.Random(7)
    tools = []
    for number in range(count):
        own = real[number % len(real)]["function"]
        words = own["description"].split()
        properties: dict[str, JSON] = {}
        tool = {
            "type": "function",
            "function": {
                "name": f"{own['name'][:50]}_{number}",
                "description": " ".join(dice.choices(words, k=min(40, len(words)))),
                "parameters": {"type": "object", "properties": properties},
            },
        }
        while len(orjson.dumps(tool)) < SMALL_TOOL_BYTES:
            text = " ".join(dice.choices(words, k=9))
            properties[f"option_{len(properties)}"] = {"type": "string", "description": text}
        tools.append(tool)
    return tools


def _chat(text: str, **more: JSON) -> JSONObject:
    messages = [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": text},
    ]
    return {"model": "gpt-4o-mini", "messages": messages} | more
