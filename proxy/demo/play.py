"""Prompts and a gateway's address come in; what a client with the official SDK saw comes out."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson
from openai import OpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion

from proxy.demo.gateway import Live
from proxy.demo.scenario import Prompt
from proxy.plan.envelope import open_envelope
from proxy.tools.tokens import count_tokens
from proxy.upstream.standin import Received
from proxy.wire import JSONObject

MODEL = "standin"
MAX_REQUESTS = 4
"""A prompt takes two: the one that is answered with a call, and the one with its result."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One upstream call, as the upstream received it."""

    tools: int
    tool_tokens: int
    names: tuple[str, ...]
    listing: str


@dataclass(frozen=True, slots=True)
class Played:
    """One prompt: what the client got, and what the upstream was sent for it."""

    called: tuple[str, ...]
    arguments: tuple[str, ...]
    answer: str
    first: tuple[Sent, ...]
    """The upstream calls of the prompt's first request: one, or more when tools were searched."""
    rest: tuple[Sent, ...]
    predicted: tuple[str, ...]
    discovered: tuple[str, ...]


@dataclass(slots=True)
class Player:
    """A chat application in front of one gateway."""

    live: Live
    tools: list[JSONObject]

    def play(self, prompts: Sequence[Prompt]) -> list[Played]:
        """Have all the conversations, one after the other."""
        client = OpenAI(base_url=self.live.url, api_key="demo", max_retries=0, timeout=60)
        messages: list[JSONObject] = []
        played = []
        with client:
            for prompt in prompts:
                if not prompt.follows:
                    messages = list(prompt.earlier)
                messages.append({"role": "user", "content": prompt.text})
                played.append(
                    self._turn(client.with_options(default_headers=prompt.headers), messages)
                )
        return played

    def _turn(self, client: OpenAI, messages: list[JSONObject]) -> Played:
        """One prompt until its answer in text; tools answer at once."""
        start = len(self.live.upstream.received)
        first_end, calls, answer, request_id = start, list[tuple[str, str]](), "", ""
        for number in range(MAX_REQUESTS):
            completion, said_id = self._ask(client, messages)
            if number == 0:
                first_end, request_id = len(self.live.upstream.received), said_id
            message = completion.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            answer = message.content or ""
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                function = cast("Any", call).function
                calls.append((function.name, function.arguments))
                content = _run_tool(function.name, function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
        received = self.live.upstream.received
        plan = self._plan(request_id)
        return Played(
            called=tuple(name for name, _ in calls),
            arguments=tuple(arguments for _, arguments in calls),
            answer=answer,
            first=tuple(_read_sent(received[start:first_end])),
            rest=tuple(_read_sent(received[first_end:])),
            predicted=tuple(plan.get("predicted", ())),
            discovered=tuple(plan.get("discovered", ())),
        )

    def _ask(self, client: OpenAI, messages: list[JSONObject]) -> tuple[ChatCompletion, str]:
        """One streamed request, put together by the SDK; and the request's id."""
        create: Any = client.chat.completions.with_raw_response.create
        raw = create(
            model=MODEL,
            messages=messages,
            tools=self.tools,
            stream=True,
            stream_options={"include_usage": True},
        )
        state = ChatCompletionStreamState()
        for chunk in raw.parse():
            state.handle_chunk(chunk)
        return state.get_final_completion(), raw.headers["x-request-id"]

    def _plan(self, request_id: str) -> JSONObject:
        """What the ledger says about the tools of a request; nothing when none were deferred."""
        turn = asyncio.run(self.live.gateway.ledger.timeline(request_id, None)) or {}
        detail = turn.get("plan") or (turn.get("detail") or {}).get("plan") or {}
        tools: JSONObject = detail.get("tools") or {}
        return tools


def _run_tool(name: str, arguments: str) -> str:
    """What a tool of the demo answers: always the same for the same call."""
    return orjson.dumps({"tool": name, "arguments": orjson.loads(arguments), "items": 3}).decode()


def _read_sent(received: Sequence[Received]) -> Iterator[Sent]:
    for request in received:
        envelope = open_envelope(request.body)
        raw = envelope.raw("tools") if envelope else None
        tools = orjson.loads(raw) if raw else []
        functions = {tool["function"]["name"]: tool["function"] for tool in tools}
        search: JSONObject = next(
            (f for name, f in functions.items() if name.startswith("tool_search")), {}
        )
        yield Sent(
            tools=len(tools),
            tool_tokens=count_tokens(bytes(raw).decode()) if raw else 0,
            names=tuple(functions),
            listing=search.get("description", ""),
        )
