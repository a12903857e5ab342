"""The story's messages come in; what the memory agent does without and with the gate goes out.

Every message goes by HTTP through a gateway on loopback, in front of the stand-in model.
"""

import threading
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import orjson

from proxy.demo.gateway import START_SECONDS, serve_gateway
from proxy.demo.talk import CONVERSATIONS, hold_talks
from proxy.judge_settings import Classification, MemoryGate
from proxy.memory_settings import Memory
from proxy.settings import Deferral
from proxy.wire import JSONObject

_MEMORY = Memory(mode="on", join_ms=5_000, note_ms=1_000, runs_per_minute=10_000)


def compare_memory() -> JSONObject:
    """The same conversations twice; the gate is the built-in one, the agent the stand-in."""
    report: JSONObject = {"conversations": CONVERSATIONS}
    for name, gated in (("off", False), ("on", True)):
        with TemporaryDirectory() as folder:
            report[name] = _remember(Path(folder), gated=gated)
    return {**report, "turns": report["off"]["turns"]}


def _remember(folder: Path, *, gated: bool) -> JSONObject:
    judging = Classification(memory_gate=MemoryGate(enabled=gated))
    with serve_gateway(folder, Deferral(), _MEMORY, judging) as live:
        for thread in threading.enumerate():
            if thread.name == "gate":  # the better form of the gate is loaded beside the server
                thread.join(START_SECONDS)
        user = _User(live.url)
        talks = enumerate(hold_talks())
        runs = [user.say(number, said) for number, talk in talks for said in _grow(talk)]
        found = user.ask("GET", "/usher/memory")
        user.close()
    stored = [{"key": memory["key"], "value": memory["value"]} for memory in found["memories"]]
    return {
        "turns": len(runs),
        "runs": sum(runs),
        "stored": stored,
        "tokens": found["total_tokens"],
    }


def _grow(talk: list[str]) -> list[list[JSONObject]]:
    """The messages of each request of a conversation, which has all that was said before."""
    requests: list[list[JSONObject]] = []
    before: list[JSONObject] = []
    for text in talk:
        requests.append([*before, {"role": "user", "content": text}])
        before = [*requests[-1], {"role": "assistant", "content": "Of course."}]
    return requests


class _User:
    """Somebody with an HTTP client."""

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=START_SECONDS)
        self._last = ""

    def say(self, conversation: int, messages: list[JSONObject]) -> bool:
        """One chat request; whether the memory agent's model ran for it."""
        wish = {"conversation-id": str(conversation)}
        body = {"model": "standin", "messages": messages, "usher": wish}
        self.ask("POST", "/v1/chat/completions", body)
        told = self.ask("GET", f"/usher/memory/explain?request_id={self._last}")
        return bool(told["calls"])

    def ask(self, method: str, path: str, body: JSONObject | None = None) -> JSONObject:
        """One request and its reply."""
        headers = {"content-type": "application/json", "x-usher-user-id": "ali"}
        sent = orjson.dumps(body) if body is not None else None
        self._connection.request(method, path, sent, headers)
        reply = self._connection.getresponse()
        self._last = reply.headers.get("x-request-id", "")
        found: JSONObject = orjson.loads(reply.read())
        return found

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
