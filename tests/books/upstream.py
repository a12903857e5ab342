"""An upstream for a whole day: answers by a script, and keeps books of its own."""

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import orjson

from proxy.errors import ConnectFailed
from proxy.upstream.transport import Prepared, UpstreamRequest
from proxy.wire import JSONObject
from tests.fakes.transport import Outcome
from tests.turns import JSON_TYPE, SSE_TYPE, call, search

Key = tuple[str, str]
"""Model and context."""

SEARCH = [search("storm warnings")]
SECOND = [search("send mail", "s2")]
REAL = [call("weather_now", {"city": "Rome"})]
FOUND = [call("weather_alerts", {"region": "Lazio"}, "c2")]
BROKEN = [call("mail_delete", {"id": "x"})]

Step = tuple[str, Sequence[JSONObject]]
"""The context that a round will have, and the calls it makes."""

SCRIPTS: dict[str, list[Step]] = {
    "text": [("main", [])],
    "plain": [("main", [])],
    "silent": [("main", [])],
    "gone": [("main", [])],
    "direct": [("main", REAL)],
    "search": [("search_round", SEARCH), ("main", [])],
    "found": [("search_round", SEARCH), ("main", FOUND)],
    "twice": [("search_round", SEARCH), ("search_round", SECOND), ("main", [])],
    "repair": [("repair", BROKEN), ("main", [])],
    "retry": [("refused", []), ("main", [])],
    "error": [("error", [])],
    "refused": [("refused", []), ("refused", []), ("refused", [])],
}
"""What happens in a turn of each kind."""


@dataclass(slots=True)
class Totals:
    """What was reported."""

    calls: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0


@dataclass(slots=True)
class Upstream:
    """Answers turn after turn; `log` is what it would bill."""

    log: dict[Key, Totals] = field(default_factory=lambda: defaultdict(Totals))
    by_turn: dict[int, list[JSONObject]] = field(default_factory=lambda: defaultdict(list))
    steps: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def answer(self, sent: UpstreamRequest) -> Outcome:
        """One round of one turn; the user's message says which."""
        assert isinstance(sent.body, bytes)
        body = orjson.loads(sent.body)
        user = next(m for m in body["messages"] if m["role"] == "user")
        kind, turn = read_turn(user["content"])
        context, calls = SCRIPTS[kind][self.steps[turn]]
        self.steps[turn] += 1
        if context == "refused":
            if self.steps[turn] == len(SCRIPTS[kind]):
                self.log[body["model"], "main"].calls += 1  # the attempt that was the last
            return ConnectFailed("no route")
        totals = self.log[body["model"], context.replace("error", "main")]
        totals.calls += 1
        if context == "error":
            return Prepared(500, JSON_TYPE, b'{"error":{"message":"down","type":"server_error"}}')
        usage = None if kind == "silent" else self._bill(kind, turn, totals)
        return _reply(body, calls, usage)

    def _bill(self, kind: str, turn: int, totals: Totals) -> JSONObject:
        cached, completion = 10 * (turn % 7), turn % 50 + 1
        usage: JSONObject = {
            "prompt_tokens": 1000 + turn,
            "completion_tokens": completion,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        if kind != "gone":  # the usage of a stream is its last chunk, which nobody reads then
            totals.prompt += 1000 + turn
            totals.cached += cached
            totals.completion += completion
            self.by_turn[turn].append(usage)
        return usage


def read_turn(content: str) -> tuple[str, int]:
    """The kind and the number of a turn: the first word and number; any other text is `text`.

    Memory may have added a note to the user's message.
    """
    words = content.split()
    number = next(int(word) for word in map(_bare, words) if word.isdigit())
    return words[0] if words[0] in SCRIPTS else "text", number


def _bare(word: str) -> str:
    return word.partition(".")[0]


def _reply(body: JSONObject, calls: Sequence[JSONObject], usage: JSONObject | None) -> Prepared:
    message: JSONObject = {"role": "assistant", "content": None if calls else "Done."}
    if calls:
        message["tool_calls"] = list(calls)
    reason = "tool_calls" if calls else "stop"
    head = {"id": "chatcmpl-1", "created": 1, "model": f"{body['model']}-2026"}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason}
        whole = head | {"object": "chat.completion", "choices": [choice]}
        return Prepared(200, JSON_TYPE, orjson.dumps(whole | ({"usage": usage} if usage else {})))
    for index, made in enumerate(calls):
        message["tool_calls"][index] = made | {"index": index}
    chunks: list[JSONObject] = [
        {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
    ]
    if usage:
        chunks.append({"choices": [], "usage": usage})
    frames = [
        b"data: " + orjson.dumps(head | {"object": "chat.completion.chunk"} | chunk) + b"\n\n"
        for chunk in chunks
    ]
    return Prepared(200, SSE_TYPE, _play([*frames, b"data: [DONE]\n\n"]))


async def _play(frames: Sequence[bytes]) -> AsyncIterator[bytes]:
    for frame in frames:
        yield frame
