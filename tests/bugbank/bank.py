"""The bug bank's rows, and a stage on which they are played."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from proxy.settings import Settings
from proxy.upstream.transport import Prepared
from proxy.wire import JSONObject
from tests.turns import SETTINGS, SSE_TYPE, Stage, chunks_of, read, stage

_LINES = (Path(__file__).parent / "rows.jsonl").read_bytes().splitlines()
ROWS: dict[str, JSONObject] = {row["id"]: row for row in map(orjson.loads, _LINES)}

OFF: JSONObject = {"mode": "off"}
ON: JSONObject = {"min_tools": 1, "small_chars": 0}

both = pytest.mark.parametrize("deferral", [OFF, ON], ids=["off", "on"])
"""Untouched and intercepted streams alike."""


def settings(deferral: JSONObject | None = None, **sections: JSONObject) -> Settings:
    """The settings of the stage, some of them replaced."""
    tree: dict[str, Any] = SETTINGS.model_dump()
    tree["deferral"] = deferral or ON
    return Settings.model_validate({**tree, **sections})


def request_of(row: str, **fields: object) -> JSONObject:
    """The request that a row was reported with."""
    request: JSONObject = ROWS[row]["input"]["request"]
    return {**request, **fields}


def frames_of(row: str) -> bytes:
    """The bytes of the stream that a row's upstream sent."""
    frames: Sequence[str] = ROWS[row]["input"]["upstream"]["sse"]
    return "".join(frames).encode()


async def _cut(body: bytes, size: int) -> AsyncIterator[bytes]:
    for position in range(0, len(body), size):
        yield body[position : position + size]


def stream(body: bytes, size: int = 1_000_000) -> Prepared:
    """An event stream that arrives `size` bytes at a time."""
    return Prepared(200, SSE_TYPE, _cut(body, size))


async def play(
    row: str, deferral: JSONObject, *more: Prepared, size: int = 1_000_000
) -> tuple[bytes, Stage]:
    """What the client reads when a row's request meets its upstream."""
    theatre = stage(stream(frames_of(row), size), *more, settings=settings(deferral))
    return await read(await theatre.chat(request_of(row))), theatre


def calls_of(body: bytes) -> dict[int, JSONObject]:
    """The tool calls that a client accumulates by index."""
    made: dict[int, JSONObject] = {}
    for chunk in chunks_of(body):
        for choice in chunk["choices"]:
            for piece in choice["delta"].get("tool_calls") or []:
                call = made.setdefault(piece.get("index", len(made)), {"arguments": ""})
                call.update({key: piece[key] for key in ("id", "type") if key in piece})
                function = piece.get("function") or {}
                call.setdefault("name", function.get("name"))
                text = function.get("arguments") or ""
                call["arguments"] += text if isinstance(text, str) else orjson.dumps(text).decode()
    return made


def text_of(body: bytes) -> str:
    """The text that a client accumulates."""
    choices = [choice for chunk in chunks_of(body) for choice in chunk["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def finishes_of(body: bytes) -> list[str]:
    """Every finish reason in the stream."""
    choices = [choice for chunk in chunks_of(body) for choice in chunk["choices"]]
    return [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]


def tool_names(body: JSONObject) -> list[str]:
    """The names of the tools in an upstream body."""
    return [tool["function"]["name"] for tool in body.get("tools", [])]
