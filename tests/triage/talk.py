"""A client, a provider that signs and checks, and a judge for whole conversations under triage."""

import hashlib
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from prometheus_client import CollectorRegistry

from proxy.judge.job import Purpose
from proxy.ledger.usage import Tokens
from proxy.plan.envelope import open_envelope
from proxy.plan.identity import Caller
from proxy.plan.weave import Edit
from proxy.state.memory import MemoryStore, Store
from proxy.triage.candidates import Candidate
from proxy.triage.conduct import Conduct, Parts
from proxy.triage.decide import Action, Decider, Ruled, Ruling
from proxy.triage.history import Histories
from proxy.triage.plan import Act
from proxy.triage.planner import Planner, Staff
from proxy.triage.session import Layout, Mode, Scene, Session
from proxy.triage.store import Plans
from proxy.triage.tally import TriageTally
from proxy.triage.units import Conversation
from proxy.triage.writer import Writer
from proxy.triage_settings import Limits, Triage
from proxy.upstream.transport import Prepared
from proxy.wire import JSON, JSONObject

TOOLS = orjson.dumps([{"type": "function", "function": {"name": "look"}}])


def user(text: str) -> JSONObject:
    return {"role": "user", "content": text}


def said(text: str, **more: JSON) -> JSONObject:
    return {"role": "assistant", "content": text, **more}


def step(number: int, result: str = "found", calls: int = 1, **more: JSON) -> list[JSONObject]:
    """An assistant's calls and their results."""
    ids = [f"c{number}_{place}" for place in range(calls)]
    made = [
        {
            "id": call_id,
            "type": "function",
            "function": {"name": "look", "arguments": f'{{"at":{number},"place":{place}}}'},
        }
        for place, call_id in enumerate(ids)
    ]
    results = [
        {"role": "tool", "tool_call_id": call_id, "content": f"{result} {call_id}"}
        for call_id in ids
    ]
    return [{"role": "assistant", "content": None, "tool_calls": made, **more}, *results]


def converse(messages: Sequence[JSONObject], who: str | None = None) -> Conversation:
    """The units of these messages."""
    found = Histories(seed=1).read(orjson.dumps(messages), "default", who)
    assert found is not None
    return found


def act_on(conversation: Conversation, **acts: tuple[str, str]) -> dict[str, Act]:
    """Acts by `u3=("drop", "a label")`."""
    units = {f"u{unit.number}": unit for unit in conversation.units}
    made: dict[str, Act] = {}
    for name, (kind, text) in acts.items():
        assert kind in {"drop", "note", "clear"}
        made[units[name].link.hex()] = Act(kind, text, units[name].number)  # type: ignore[arg-type]  # checked above
    return made


class FakeDecider:
    """Rules by a table of unit numbers, or by a hash of the unit's words."""

    def __init__(self, table: dict[int, Action] | None = None) -> None:
        self.table = table
        self.asked: list[list[int]] = []

    async def decide(self, candidates: Sequence[Candidate], newest: str, purpose: Purpose) -> Ruled:
        self.asked.append([c.unit.number for c in candidates])
        return Ruled([Ruling(c, self._rule(c), 0.9, 0.7, self._rule(c)) for c in candidates])

    def _rule(self, candidate: Candidate) -> Action:
        if self.table is not None:
            return self.table.get(candidate.unit.number, "keep")
        digest = hashlib.sha256(orjson.dumps(candidate.messages)).digest()[0]
        if candidate.unit.kind == "step" and digest % 5 == 4:
            return "clear"
        actions: tuple[Action, ...] = ("keep", "compress", "drop", "drop")
        return actions[digest % 4]


class FakeWriter:
    """Writes the same short note for everything."""

    def __init__(self, note: str | None = "Noted.") -> None:
        self.note = note

    async def write(self, candidates: Sequence[Candidate], purpose: Purpose) -> dict[str, str]:
        return {} if self.note is None else {c.link: self.note for c in candidates}


@dataclass(slots=True)
class Studio:
    """Triage with fakes around it; decisions wait in `later` until they are let run."""

    settings: Triage
    decider: Decider | None = field(default_factory=FakeDecider)
    writer: Writer | None = field(default_factory=FakeWriter)
    limits: Limits = field(default_factory=Limits)
    store: MemoryStore = field(default_factory=lambda: MemoryStore(10_000_000, 3600))
    shared: Store | None = None
    later: list[Coroutine[Any, Any, None]] = field(default_factory=list)
    now: float = 1000.0
    model: str = "m"
    windows: dict[str, int] = field(default_factory=dict)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    conduct: Conduct = field(init=False)

    def __post_init__(self) -> None:
        self.conduct = self.restart()

    def restart(self) -> Conduct:
        """Triage of a worker that begins with the same store."""
        planner = Planner(Staff(self.decider, self.writer), lambda: self.now)
        self.registry = CollectorRegistry()
        parts = Parts(
            Plans(self.shared or self.store),
            Plans(self.shared or self.store, "shadow"),
            planner,
            TriageTally(self.registry),
            self.later.append,
            lambda: self.now,
            lambda _, model: self.windows.get(model),
        )
        return Conduct(self.settings, self.limits, parts)

    async def open(
        self, messages: Sequence[JSONObject], mode: Mode | None = None, **body: JSON
    ) -> Session:
        """The session of one request."""
        scene = self.scene(messages, mode, **body)
        session = await self.conduct.open(scene)
        assert isinstance(session, Session)
        return session

    def scene(
        self, messages: Sequence[JSONObject], mode: Mode | None = None, **body: JSON
    ) -> Scene:
        """A request with one tool."""
        whole = {"model": "m", "messages": messages, "tools": orjson.Fragment(TOOLS), **body}
        envelope = open_envelope(orjson.dumps({k: v for k, v in whole.items() if v is not None}))
        assert envelope is not None
        return Scene(envelope, Caller(), "req_1", mode or self.settings.mode, model=self.model)

    async def send(
        self,
        messages: Sequence[JSONObject],
        mode: Mode | None = None,
        edits: dict[int, Edit] | None = None,
        **body: JSON,
    ) -> tuple[list[JSONObject], Session]:
        """What goes up for one request, and its session."""
        session = await self.open(messages, mode, **body)
        layout = Layout(edits or {}, recall=session.recallable)
        woven = session.weave(layout)
        await session.send()
        return orjson.loads(woven), session

    async def answer(self, session: Session, body: bytes) -> None:
        """The upstream's reply goes by."""
        response = session.hear(Prepared(200, [], body))
        assert await response.read() == body

    def hear(self, session: Session, prompt: int | None = None, cached: int | None = None) -> None:
        """The answer has ended; without a number it is what was sent that counts."""
        assert session.stitched is not None
        size = len(session.stitched.body) // 4 if prompt is None else prompt
        session.end(Tokens(prompt=size, cached=cached))

    async def settle(self) -> None:
        """Lets the decisions run that are due."""
        while self.later:
            await self.later.pop(0)


def small(**more: JSON) -> Triage:
    """Settings under which short conversations are triaged."""
    base: JSONObject = {
        "mode": "on",
        "budget_tokens": 100,
        "min_turns": 1,
        "protect": {"turns": 1, "steps": 1, "first": False},
        "cost": {"min_reclaim": 0.0, "expected_calls": 1000},
    }
    return Triage.model_validate({**base, **more})


def check_pairs(messages: Sequence[JSONObject]) -> None:
    """Every call has its results right behind it, and every result its call."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, "a result without its call"
            waiting.discard(message["tool_call_id"])
            continue
        assert not waiting, "a call without its result"
        waiting = {call["id"] for call in message.get("tool_calls") or ()}
    assert not waiting, "a call without its result"


def sign(messages: Sequence[JSONObject]) -> str:
    """A provider's signature over the whole prefix."""
    return hashlib.sha256(orjson.dumps([plain(message) for message in messages])).hexdigest()


def check_signatures(messages: Sequence[JSONObject]) -> None:
    """The provider's 400: a signed block that was made from another prefix."""
    for position, message in enumerate(messages):
        for block in message.get("thinking_blocks") or ():
            assert block["signature"] == sign(messages[:position]), "invalid signature"


def plain(message: JSONObject) -> JSON:
    """A message without ids and outer white space."""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    blocks = [block["signature"] for block in message.get("thinking_blocks") or ()]
    return [message["role"], str(message.get("content") or "").strip(), calls, blocks]
