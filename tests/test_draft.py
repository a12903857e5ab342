"""Requests of one conversation extend each other, whatever happens in between."""

import asyncio
import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.draft import Draft, Drafter
from proxy.facts import list_decisions
from proxy.plan.plan import RequestPlan
from proxy.settings import Settings
from proxy.shelf import Shelf
from proxy.state.memory import MemoryStore
from proxy.tools.document import Document
from proxy.tools.lexical import LexicalIndex, build_lexical
from proxy.tools.score import Hit, Scores
from proxy.upstream.transport import UpstreamRequest
from proxy.wire import JSONObject
from tests.fakes.transport import Outcome
from tests.turns import (
    Stage,
    call,
    chat_request,
    chunks_of,
    completion,
    events,
    read,
    request,
    search,
    stage,
)

pytestmark = pytest.mark.anyio

_NAMES = ["weather_now", "weather_forecast", "weather_alerts", "mail_send", "mail_search"]
_FIELDS = {"mail_send": "to", "mail_search": "query", "weather_alerts": "region"}


def _settings(delivery: str) -> Settings:
    deferral = {"min_tools": 1, "small_chars": 0, "delivery": delivery, "max_rounds": 8}
    return Settings.model_validate(
        {
            "upstream": {"base_url": "http://127.0.0.1:1/v1", "retries": 0},
            "deferral": deferral,
            "prediction": {"mode": "on"},
        }
    )


@dataclass
class Whimsical:
    """A model that searches, calls, talks, or does several of these at once, at random."""

    dice: random.Random
    stream: bool
    count: int = 0
    searched: int = 0
    kinds: list[str] = field(default_factory=list)

    def answer(self, sent: UpstreamRequest) -> Outcome:
        """The next message; what it calls is valid in the delivery that it sees."""
        assert isinstance(sent.body, bytes)
        body = orjson.loads(sent.body)
        self.count += 1
        declared = {tool["function"]["name"] for tool in body.get("tools", [])}
        text = self.dice.choice([None, f"Text {self.count}.", "So:\n"])
        calls = [
            self._call(declared, f"c{self.count}-{position}")
            for position in range(self.dice.choice([0, 0, 1, 1, 2, 3]))
        ]
        if not calls:
            text = text or "Done."
        make = events if self.stream else completion
        return make(text, calls, number=self.count)

    def _call(self, declared: set[str], call_id: str) -> JSONObject:
        if "tool_search" in declared and self.dice.random() < 0.5:
            self.searched += 1
            words = self.dice.sample(["storm", "weather", "mail", "send", "delete", "zzz"], 2)
            return search(f"{' '.join(words)} {self.searched}", call_id)
        name = self.dice.choice(_NAMES)
        arguments = {_FIELDS.get(name, "city"): "x"}
        if "call_tool" in declared:
            return call("call_tool", {"name": name, "arguments": arguments}, call_id)
        return call(name, arguments, call_id)


def _grow(calls: dict[int, JSONObject], piece: JSONObject) -> None:
    empty: JSONObject = {"id": "", "function": {"name": "", "arguments": ""}}
    made = calls.setdefault(piece["index"], empty)
    made["id"] = made["id"] or piece.get("id", "")
    for key in ("name", "arguments"):
        made["function"][key] += piece["function"].get(key) or ""


def _visible_message(body: bytes, stream: bool) -> JSONObject:
    """The assistant message as a client would keep it."""
    if not stream:
        message: JSONObject = orjson.loads(body)["choices"][0]["message"]
        return message
    text, calls = "", dict[int, JSONObject]()
    for chunk in chunks_of(body):
        for choice in chunk["choices"]:
            text += choice["delta"].get("content") or ""
            for piece in choice["delta"].get("tool_calls", []):
                _grow(calls, piece)
    kept: JSONObject = {"role": "assistant", "content": text or None}
    if calls:
        kept["tool_calls"] = [{**made, "type": "function"} for made in calls.values()]
    return kept


def _results(message: JSONObject) -> list[JSONObject]:
    return [
        {"role": "tool", "tool_call_id": made["id"], "content": f"result of {made['id']}"}
        for made in message.get("tool_calls", [])
    ]


def _assert_valid(body: JSONObject) -> None:
    """Every call has its result right behind it, and no id stands for two calls."""
    waiting: list[str] = []
    seen: set[str] = set()
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        ids = [made["id"] for made in message.get("tool_calls") or []]
        assert not seen.intersection(ids)
        assert len(set(ids)) == len(ids)
        seen.update(ids)
        waiting = ids
    assert not waiting


def _assert_extends(before: JSONObject, after: JSONObject) -> None:
    """The last round of a turn that would not stop searching has no search tool: an exception."""
    assert after["messages"][: len(before["messages"])] == before["messages"]
    if _may_search(before) and _may_search(after):
        assert after["tools"][: len(before["tools"])] == before["tools"]


def _may_search(body: JSONObject) -> bool:
    return any(tool["function"]["name"] == "tool_search" for tool in body["tools"])


async def _converse(seed: int, delivery: str, stream: bool, forgetful: bool) -> None:
    dice = random.Random(seed)
    model = Whimsical(dice, stream)
    theatre = stage(settings=_settings(delivery), answer=model.answer)
    history: list[JSONObject] = [{"role": "system", "content": "Help."}]
    for turn in range(4):
        words = dice.sample(["weather", "storm", "mail", "send", "thanks", "find"], 2)
        history.append({"role": "user", "content": f"{' '.join(words)} {turn}"})
        for _ in range(4):
            forgot = forgetful and dice.random() < 0.5
            if forgot:
                theatre.store.clear()
            message = await _ask(theatre, history, stream, compare=not forgot)
            history = [*history, message, *_results(message)]
            if not message.get("tool_calls"):
                break
            if dice.random() < 0.2:  # the client asks again, or another worker does
                await _ask(theatre, history, stream, compare=False)
    for body in theatre.bodies:
        _assert_valid(body)


async def _ask(
    theatre: Stage, history: list[JSONObject], stream: bool, *, compare: bool = True
) -> JSONObject:
    sent = len(theatre.bodies)
    reply = await theatre.chat(request(*history, stream=stream))
    raw = await read(reply)
    bodies = theatre.bodies
    for number in range(sent, len(bodies) - 1):
        _assert_extends(bodies[number], bodies[number + 1])
    if compare and sent and _continues(bodies[sent - 1], bodies[sent]):
        _assert_extends(bodies[sent - 1], bodies[sent])
    return _visible_message(raw, stream)


def _continues(before: JSONObject, after: JSONObject) -> bool:
    """Whether the later request is the next one of the same branch, not a retry."""
    return len(after["messages"]) > len(before["messages"])


@pytest.mark.item("cache/append-only")
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    delivery=st.sampled_from(["append", "frozen"]),
    stream=st.booleans(),
    forgetful=st.booleans(),
)
def test_a_conversation_only_grows(seed: int, delivery: str, stream: bool, forgetful: bool) -> None:
    """The upstream's messages and tools of each call are a prefix of the next call's.

    A store that forgets costs the prefix once, and never the validity of a request.
    """
    asyncio.run(_converse(seed, delivery, stream, forgetful))


async def _draft(body: JSONObject, delivery: str = "append") -> Draft | RequestPlan:
    drafter = stage(settings=_settings(delivery)).drafter
    return await drafter.draft(drafter.open(chat_request(orjson.dumps(body))))


async def test_every_tool_has_a_fate_and_a_reason() -> None:
    """What is kept, predicted, called and deferred can be told apart."""
    user: JSONObject = {"role": "user", "content": "Send an e-mail to Ann, use mail_send"}
    called: JSONObject = {"role": "assistant", "tool_calls": [call("weather_now", {"city": "x"})]}
    system: JSONObject = {"role": "system", "content": "First call weather_alerts."}
    draft = await _draft(request(system, called, {"role": "tool", "tool_call_id": "c1"}, user))
    assert isinstance(draft, Draft)
    fates = {decision.tool: (decision.fate, decision.reason) for decision in list_decisions(draft)}
    assert fates["weather_alerts"] == ("kept", "system prompt")
    assert fates["weather_now"] == ("called", "history")
    assert fates["mail_send"] == ("predicted", "ranked")
    assert fates["mail_delete"] == ("deferred", "listed")


async def test_all_kept_is_nothing_to_do() -> None:
    """When a prompt names every tool the request goes up as it came."""
    names = [tool["function"]["name"] for tool in request()["tools"]]
    system: JSONObject = {"role": "system", "content": " ".join(names)}
    plan = await _draft(request(system, {"role": "user", "content": "hi"}))
    assert isinstance(plan, RequestPlan)
    assert plan.bypass == "all kept"


@pytest.mark.item("cache/frozen-constant")
async def test_a_frozen_array_never_grows() -> None:
    """Predicted schemas arrive as a search result behind the newest user message."""
    draft = await _draft(request({"role": "user", "content": "Send an e-mail to Ann"}), "frozen")
    assert isinstance(draft, Draft)
    body = orjson.loads(draft.arrangement.render(search=True))
    assert [tool["function"]["name"] for tool in body] == ["tool_search", "call_tool"]
    user, assistant, result = orjson.loads(draft.brief.messages)
    assert user["role"] == "user"
    assert assistant["tool_calls"][0]["function"]["name"] == "tool_search"
    assert result["tool_call_id"] == assistant["tool_calls"][0]["id"]
    loaded = {tool["name"]: tool for tool in orjson.loads(result["content"])["loaded"]}
    assert loaded["mail_send"]["parameters"]["required"] == ["to"]


async def test_a_frozen_history_shows_calls_as_the_model_made_them() -> None:
    """Calls of undeclared tools go through the bridge, with their ids, behind their schemas."""
    user: JSONObject = {"role": "user", "content": "thanks"}
    called: JSONObject = {"role": "assistant", "tool_calls": [call("mail_delete", {"id": 3})]}
    result: JSONObject = {"role": "tool", "tool_call_id": "c1", "content": "gone"}
    draft = await _draft(request(user, called, result), "frozen")
    assert isinstance(draft, Draft)
    messages = orjson.loads(draft.brief.messages)
    shown = next(m for m in messages if m.get("tool_calls") and m["tool_calls"][0]["id"] == "c1")
    function = shown["tool_calls"][0]["function"]
    assert function["name"] == "call_tool"
    assert orjson.loads(function["arguments"]) == {"name": "mail_delete", "arguments": {"id": 3}}
    assert b"mail_delete" in orjson.dumps(messages[: messages.index(shown)])


async def test_a_bridge_call_is_a_real_call_for_the_client() -> None:
    """Streaming or not, the client never hears of the bridge."""
    bridged = call("call_tool", {"name": "mail_delete", "arguments": {"id": "7"}})
    for stream, make in ((False, completion), (True, events)):
        theatre = stage(make(None, [bridged]), settings=_settings("frozen"))
        raw = await read(await theatre.chat(request(stream=stream)))
        function = _visible_message(raw, stream)["tool_calls"][0]["function"]
        assert (function["name"], function["arguments"]) == ("mail_delete", '{"id":7}')
        assert b"call_tool" not in raw


async def test_models_that_sign_their_reasoning_are_not_spoken_for() -> None:
    """No search is put into the history in the name of a model that would have signed it."""
    body = request({"role": "user", "content": "Send an e-mail to Ann"}, model="gemini-3-pro")
    draft = await _draft({**body, "model": "gemini-3-pro"}, "frozen")
    assert isinstance(draft, Draft)
    assert len(orjson.loads(draft.brief.messages)) == 1


@dataclass
class Watched:
    """An index that notes in which thread it ranks."""

    inner: LexicalIndex
    threads: list[str]

    @property
    def documents(self) -> Sequence[Document]:
        return self.inner.documents

    @property
    def twins(self) -> Mapping[int, int]:
        return self.inner.twins

    def rank(self, query: str, limit: int) -> list[Hit]:
        return self.inner.rank(query, limit)

    def score(self, query: str) -> Scores:
        self.threads.append(threading.current_thread().name)
        return self.inner.score(query)


async def test_a_long_history_is_predicted_beside_the_event_loop() -> None:
    """Seen for the first time it holds nobody up, and surfaces what it would have otherwise."""
    threads: list[str] = []
    own = _settings("append")
    shelf = Shelf(
        own.deferral,
        own.prediction,
        lambda documents: Watched(build_lexical(documents), threads),
        10_000_000,
    )
    drafter = Drafter(own, shelf, MemoryStore(1_000_000, 60))
    said: list[JSONObject] = []
    drafts = []
    for number in range(40):
        said.append({"role": "user", "content": f"weather alerts for region {number}?"})
        if number in (37, 38, 39):
            opened = drafter.open(chat_request(orjson.dumps(request(*said))))
            drafts.append(await drafter.draft(opened))
            if number == 37:
                assert "MainThread" not in threads
        said.append({"role": "assistant", "content": "None."})
    assert "MainThread" in threads  # a further turn is a single moment
    arrays = [draft.arrangement.render(search=True) for draft in drafts if isinstance(draft, Draft)]
    one_by_one = stage(settings=own).drafter
    for number, array in zip((37, 38, 39), arrays, strict=True):
        body = orjson.dumps(request(*said[: 2 * number + 1]))
        other = await one_by_one.draft(one_by_one.open(chat_request(body)))
        assert isinstance(other, Draft)
        assert other.arrangement.render(search=True) == array
