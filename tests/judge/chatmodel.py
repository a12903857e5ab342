"""A chat model for tests that answers decisions by counting shared words; deterministic.

It understands exactly what emulation sends: letters with log probabilities, a strict schema, or a
forced tool. Switches take abilities away, as real servers lack them.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from proxy.upstream.transport import Prepared, UpstreamRequest
from tests.judge.fakes import body_of, reply

OPTION = re.compile(r"^([A-Z])\. (.*)$", re.MULTILINE)
NUMBER = re.compile(r"^(q\d+(?:_o\d+)?): (.*)$", re.MULTILINE)


@dataclass
class ChatModel:
    """Its abilities; `asked` keeps the bodies."""

    logprobs: bool = True
    structured: bool = True
    tool: bool = True
    temperature: bool = True
    mass: float = 0.98
    written: Mapping[str, Any] | None = None
    refuses: bool = False
    asked: list[Any] = field(default_factory=list)

    def __call__(self, request: UpstreamRequest) -> Prepared:
        body = body_of(request)
        self.asked.append(body)
        if "temperature" in body and not self.temperature:
            return reply({"error": {"message": "unsupported", "param": "temperature"}}, 400)
        if "tools" in body:
            return self._tool(body) if self.tool else reply({}, 400)
        if "response_format" in body:
            return self._text(body) if self.structured else reply({}, 400)
        return self._letter(body)

    @property
    def kinds(self) -> list[str]:
        """How it was asked."""
        return [
            "tool" if "tools" in b else "structured" if "response_format" in b else "logprobs"
            for b in self.asked
        ]

    def _letter(self, body: Any) -> Prepared:
        text = body["messages"][-1]["content"]
        options = OPTION.findall(text)
        weights = share(text, [option for _, option in options], self.mass)
        tokens = [
            {"token": f" {letter}", "logprob": math.log(weight)}
            for (letter, _), weight in zip(options, weights, strict=True)
        ]
        tokens.append({"token": "Well", "logprob": math.log(max(1e-9, 1 - self.mass))})
        logprobs = {"content": [{"token": " A", "top_logprobs": tokens[:20]}]}
        return self._reply({"content": "A"}, logprobs if self.logprobs else None)

    def _text(self, body: Any) -> Prepared:
        return self._reply({"content": self._numbers(body)})

    def _tool(self, body: Any) -> Prepared:
        function = {"name": "emit_decision", "arguments": self._numbers(body)}
        call = {"id": "c", "type": "function", "function": function}
        return self._reply({"content": None, "tool_calls": [call]})

    def _numbers(self, body: Any) -> str:
        if self.written is not None:
            return orjson.dumps(self.written).decode()
        text = body["messages"][-1]["content"]
        found: dict[str, list[tuple[str, str]]] = {}
        for key, option in NUMBER.findall(text):
            found.setdefault(key.split("_")[0], []).append((key, option))
        numbers: dict[str, float] = {}
        for rows in found.values():
            weights = share(text, [option for _, option in rows], 1.0)
            numbers |= {key: round(w, 4) for (key, _), w in zip(rows, weights, strict=True)}
            if len(rows) == 1:
                numbers[rows[0][0]] = 0.7
        return orjson.dumps(numbers).decode()

    def _reply(self, message: Any, logprobs: Any = None) -> Prepared:
        if self.refuses:
            message = {"content": None, "refusal": "I cannot."}
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
        return reply(
            {
                "model": "small-2026",
                "choices": [{**choice, "logprobs": logprobs}],
                "usage": {"prompt_tokens": 50, "completion_tokens": 1},
            }
        )


def share(text: str, options: Sequence[str], mass: float) -> list[float]:
    """Weights by the words that an option shares with the document."""
    document = set(re.findall(r"\w+", text.split("</document>", maxsplit=1)[0].lower()))
    scores = [
        1.0 + 3 * len(document & set(re.findall(r"\w+", option.lower()))) for option in options
    ]
    return [mass * score / sum(scores) for score in scores]
