"""Streams every kind of memory artifact through real client libraries: none may raise.

A conversation has one turn for each of them: stored, deleted, no room for it, no room at all. Each
library reports what it found on the finish chunk; a raw stream is read for LibreChat's event.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from proxy.memory.offline import OfflineWriter
from proxy.memory.principal import Principal
from proxy.memory.writer import Errand
from proxy.tools.tokens import count_tokens
from proxy.upstream.desk import render_call
from proxy.upstream.standin import StandinTransport
from proxy.upstream.transport import Prepared, UpstreamRequest, UpstreamResponse
from tests.clients.suite import (
    ROOT,
    TIMEOUT_SECONDS,
    find_cache,
    prepare_node,
    prepare_python,
)
from tests.clients.upstream import serve
from tests.conformance.served import usher

CLIENTS = ("memory_openai.py", "memory_openai.mjs", "memory_ai_sdk.mjs")
LIMIT = 120
"""Tokens of one user's memories."""
LONG = (
    "Please remember that my hobbies are chess, rowing, baking bread, old radios, bird watching, "
    "calligraphy, juggling, long walks in the rain and the history of maps."
)


def filler(tokens: int) -> str:
    """A value of exactly so many tokens."""
    text = "word" + " word" * (tokens - 1)
    assert count_tokens(text) == tokens
    return text


TURNS: Sequence[Mapping[str, Any]] = (
    {"expected": "update", "says": "Please remember that I live in Lisbon.", "fill": None},
    {"expected": "delete", "says": "Please forget that I live in Lisbon.", "fill": None},
    {"expected": "would_exceed", "says": LONG, "fill": filler(LIMIT - 5)},
    {"expected": "already_exceeded", "says": LONG + " All of them.", "fill": filler(LIMIT)},
)


class Upstream:
    """The stand-in model, which also writes memories when it is asked as the memory agent."""

    def __init__(self) -> None:
        self._chat = StandinTransport()

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        """What the model answers."""
        assert isinstance(request.body, bytes)
        body = orjson.loads(request.body)
        named = [tool["function"]["name"] for tool in body.get("tools", ())]
        if "set_memory" not in named:
            return await self._chat.send(request)
        answer = await OfflineWriter().complete(body, Errand(Principal("t", "u"), "r", "k"))
        message = {**answer.message, "tool_calls": [render_call(call) for call in answer.calls]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        reply = {"id": "m", "object": "chat.completion", "model": "writer", "choices": [choice]}
        return Prepared(200, [(b"content-type", b"application/json")], orjson.dumps(reply))

    async def aclose(self) -> None:
        """Nothing to close."""


def main() -> int:
    """Run every client and the raw check, report; 0 when all passed."""
    cache = find_cache()
    python, scripts = prepare_python(cache), prepare_node(cache)
    settings = {
        "USHER_MEMORY__MODE": "on",
        "USHER_MEMORY__JOIN_MS": "10000",
        "USHER_MEMORY__TOKEN_LIMIT": str(LIMIT),
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Upstream()) as upstream,
        usher(upstream, **settings) as url,
    ):
        turns = Path(folder) / "turns.json"
        turns.write_text(json.dumps(TURNS))
        env = {"CLIENT_URL": url, "CLIENT_TURNS": str(turns)}
        verdicts = [
            verdict
            for client in CLIENTS
            for verdict in _judge(
                client, _run(python if client.endswith(".py") else "node", scripts / client, env)
            )
        ]
        verdicts += [("raw stream", _find_raw_faults(url, events=False))]
        verdicts += [("raw stream, attachment", _find_raw_faults(url, events=True))]
    for name, faults in verdicts:
        sys.stdout.write(f"{name:40} {'; '.join(faults) or 'ok'}\n")
    failed = sum(bool(faults) for _, faults in verdicts)
    sys.stdout.write(f"memory: {len(verdicts) - failed} passed, {failed} failed\n")
    return 1 if failed else 0


def _run(interpreter: Path | str, script: Path, env: Mapping[str, str]) -> str:
    """The client's report; what it says when it fails is shown."""
    done = subprocess.run(
        [interpreter, script],
        env={**os.environ, **env},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode:
        sys.stdout.write(done.stderr[-3000:])
    return done.stdout


def _judge(client: str, output: str) -> Iterator[tuple[str, list[str]]]:
    """A verdict per way of streaming; a client tells one line per turn and way."""
    reports = [json.loads(line) for line in output.splitlines()]
    wanted = [str(turn["expected"]) for turn in TURNS]
    for mode in dict.fromkeys(report["mode"] for report in reports):
        told = [report for report in reports if report["mode"] == mode]
        found = [str(report["told"]) for report in told]
        faults = [] if found == [str([one]) for one in wanted] else [f"it was told {found}"]
        if not all(report["text"] for report in told):
            faults.append("an answer had no text")
        yield f"{client} {mode}", faults
    if not reports:
        yield client, ["it reported nothing"]


def _find_raw_faults(url: str, *, events: bool) -> list[str]:
    """What a stream's bytes hold: the comment always, LibreChat's event only where asked for."""
    faults = []
    headers = {"x-usher-user-id": f"raw-{events}", "authorization": "Bearer k"}
    if events:
        headers["x-usher-events"] = "attachment"
    for turn in TURNS:
        if turn["fill"]:
            _send(url, "PUT", "/usher/memory/long", {"value": turn["fill"]}, headers)
        body = {"model": "standin", "stream": True}
        body["messages"] = [{"role": "user", "content": turn["says"]}]
        raw = _send(url, "POST", "/v1/chat/completions", body, headers)
        wanted = turn["expected"]
        if ": usher-memory {" not in raw or not raw.rstrip().endswith("data: [DONE]"):
            faults.append(f"{wanted}: no comment, or no end")
        attached = [_read_event(block) for block in raw.split("\n\n") if "event:" in block]
        kinds = [_kind(one["memory"]) for one in attached if one["type"] == "memory"]
        if kinds != ([wanted] if events else []):
            faults.append(f"{wanted}: the events were {kinds}")
    return faults


def _read_event(block: str) -> dict[str, Any]:
    named, _, data = block.partition("\n")
    assert named == "event: attachment", named
    found: dict[str, Any] = json.loads(data.removeprefix("data: "))
    assert found["toolCallId"]
    assert found["messageId"]
    return found


def _kind(memory: dict[str, Any]) -> str:
    """The artifact's kind; LibreChat's client parses an error out of its value."""
    if memory["type"] != "error":
        return str(memory["type"])
    told = json.loads(memory["value"])
    assert memory["key"] == "system"
    assert told.keys() == {"errorType", "tokenCount", "totalTokens", "tokenLimit"}
    return str(told["errorType"])


def _send(
    url: str, method: str, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
) -> str:
    sent = {"content-type": "application/json", **headers}
    request = urllib.request.Request(
        url.removesuffix("/v1") + path, json.dumps(body).encode(), sent, method=method
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return bytes(answer.read()).decode()


if __name__ == "__main__":
    sys.exit(main())
