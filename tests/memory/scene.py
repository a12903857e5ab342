"""A turn with memory around it: a scripted gate, a scripted writer, a real store in a file."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import structlog
from prometheus_client import CollectorRegistry

from proxy.background import Background
from proxy.dispatch import Dispatch
from proxy.draft import Drafter
from proxy.judge.books import NoPrices
from proxy.judge.build import Around, Judges
from proxy.judge.fused import TurnJudge
from proxy.judge.questions import State
from proxy.judge.wording import load_wordings
from proxy.ledger.usage import Row
from proxy.memory.bank import Bank
from proxy.memory.database import Database, memory_url
from proxy.memory.pinned import Pinned
from proxy.memory.principal import Principal
from proxy.memory.service import Brought, MemoryService, Parts
from proxy.memory.tally import RunTally
from proxy.memory.writer import Errand, Writer, WriterFailed
from proxy.observe.metrics import Metrics
from proxy.plan.exchange import Reply
from proxy.plan.identity import Caller
from proxy.settings import Settings
from proxy.shelf import Shelf
from proxy.state.memory import MemoryStore
from proxy.stream.collect import Answer, Call
from proxy.tools.rank import build_lexical
from proxy.turn import Crew, Turn
from proxy.wire import Headers, JSONObject
from tests.fakes.transport import FakeTransport
from tests.turns import ListLedger, chat_request, completion

ALI = Principal("default", "ali")
Wish = tuple[str, dict[str, str]]


def set_memory(key: str, value: str) -> Wish:
    """A call of the writer."""
    return "set_memory", {"key": key, "value": value}


def delete_memory(key: str) -> Wish:
    """A call of the writer."""
    return "delete_memory", {"key": key}


def answer(*wishes: Wish) -> Answer:
    """What a writer says: calls, or that nothing is to be done."""
    calls = [
        Call(i, f"call_{i}", name, orjson.dumps(arguments).decode(), {})
        for i, (name, arguments) in enumerate(wishes)
    ]
    message: JSONObject = {"role": "assistant", "content": None if calls else "done"}
    return Answer(message, calls, "stop", None, {}, None, complete=True)


@dataclass(slots=True)
class ScriptedWriter:
    """Plays answers in order, then says that nothing is to be done; keeps what it was asked."""

    script: list[Answer | str] = field(default_factory=list)
    asked: list[JSONObject] = field(default_factory=list)
    forever: Answer | None = None
    wait: asyncio.Event | None = None

    async def complete(self, body: JSONObject, errand: Errand) -> Answer:
        """The next answer; a text is a failure of that name."""
        self.asked.append(body)
        if self.wait is not None:
            await self.wait.wait()
        if self.forever is not None:
            return self.forever
        step = self.script.pop(0) if self.script else answer()
        if isinstance(step, str):
            raise WriterFailed(step)
        return step


def gate_by(words: Sequence[str]) -> Callable[[State], float | None]:
    """A gate that lets messages with one of the words through."""

    def judge(state: State) -> float | None:
        assert isinstance(state, dict)
        latest = str(state["latest"]).lower()
        return 0.9 if any(word in latest for word in words) else 0.05

    return judge


REQUESTS = ("remember", "forget", "call me", "yes", "moved", "erinnere", "merk")


@dataclass(slots=True)
class Scene:
    """A gateway's turns as one user sees them."""

    turn: Turn
    service: MemoryService
    bank: Bank
    writer: ScriptedWriter
    transport: FakeTransport
    ledger: ListLedger
    background: Background
    store: MemoryStore
    registry: CollectorRegistry

    async def say(self, *messages: JSONObject | str, **more: object) -> Reply:
        """One request; a text is a user's message."""
        said = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
        headers: Headers = [(b"x-usher-user-id", str(more.pop("user", "ali")).encode())]
        extra = more.pop("headers", [])
        assert isinstance(extra, list)
        caller = more.pop("caller", Caller())
        assert isinstance(caller, Caller)
        body = orjson.dumps({"model": "m", "messages": said, **more})
        return await self.turn.chat(chat_request(body, [*headers, *extra], caller))

    async def settled(self) -> None:
        """Wait until nothing runs behind the replies."""
        await self.background.drain(5)

    def runs(self) -> dict[str, float]:
        """What `usher_memory_runs_total` has counted, by outcome."""
        samples = (sample for metric in self.registry.collect() for sample in metric.samples)
        counts = (s for s in samples if s.name == "usher_memory_runs_total" and s.value)
        return {sample.labels["outcome"]: sample.value for sample in counts}

    async def values(self, whose: Principal = ALI) -> dict[str, str]:
        """What is remembered."""
        return {m.key: m.value for m in (await self.bank.read(whose)).memories}

    @property
    def upstream(self) -> list[JSONObject]:
        """The bodies that the main model got."""
        return [orjson.loads(r.body) for r in self.transport.sent if isinstance(r.body, bytes)]


def header(reply: Reply, name: bytes = b"x-usher-memory") -> str:
    """A response header's value."""
    return dict(reply.headers).get(name, b"").decode()


async def read(reply: Reply) -> bytes:
    """A whole body, closed as the edge does."""
    if isinstance(reply.body, bytes):
        return reply.body
    try:
        return b"".join([chunk async for chunk in reply.body])
    finally:
        await reply.body.aclose()  # type: ignore[attr-defined] # a Watched


@asynccontextmanager
async def open_scene(
    folder: Path,
    *script: Answer | str,
    gate: Callable[[State], float | None] | None = None,
    transport: FakeTransport | None = None,
    writer: Writer | None = None,
    gated: bool = True,
    **memory: object,
) -> AsyncIterator[Scene]:
    """A scene whose writer plays the script; `memory` are settings."""
    settings = Settings.model_validate({
        "upstream": {"base_url": "http://127.0.0.1:1/v1", "retries": 0},
        "classification": {"memory_gate": {"enabled": gated}},
        "memory": {"mode": "on", "join_ms": 2_000, "note_ms": 200, **memory},
    })  # fmt: skip
    log = structlog.get_logger("test")
    ledger, background = ListLedger(), Background(log)
    upstream = transport or FakeTransport(answer=lambda _: completion("Noted."))
    models = {"memory_request": gate or gate_by(REQUESTS)}
    records: Callable[[Row], None] = ledger.record
    judges = Judges(settings, Around({}, NoPrices(), records, log, {}, models))
    judge = TurnJudge(
        judges.default, settings.classification, load_wordings(None), background.spawn
    )
    bank = Bank(Database(memory_url(None, folder)), settings.memory.token_limit)
    await bank.start()
    store, scripted = MemoryStore(1_000_000, 3_600), ScriptedWriter(list(script))

    def make_writer(_: Brought) -> Writer:
        return writer or scripted

    pinned = Pinned(store, settings.memory.refresh_seconds)
    registry = CollectorRegistry()
    runs = RunTally(registry)
    parts = Parts(bank, pinned, judge, make_writer, background.spawn, log, runs)
    service = MemoryService(parts, settings.memory, settings.classification.memory_gate)
    shelf = Shelf(settings.deferral, settings.prediction, build_lexical, 10_000_000)
    dispatch = Dispatch(settings.upstream, {"openai": upstream, "standin": upstream})
    crew = Crew(Drafter(settings, shelf, store), dispatch, ledger, Metrics(), service)
    scene = Scene(
        Turn(crew), service, bank, scripted, upstream, ledger, background, store, registry
    )
    try:
        yield scene
    finally:
        await background.drain(5)
        await bank.aclose()
