"""A chat request comes in; its memories are put in, its message is judged, and a Session goes out.

The reply never waits for memory beyond two short spans, and never fails because of it: whatever
goes wrong here becomes a reason in a header.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from structlog.typing import FilteringBoundLogger

from proxy.errors import Unavailable
from proxy.judge.fused import Asking, Companion, Pending, TurnJudge
from proxy.judge.gate import Gated, read_gate
from proxy.judge.heard import Heard as Listened
from proxy.judge.heard import listen
from proxy.judge.job import Purpose
from proxy.judge.verdict import Verdict
from proxy.judge_settings import MemoryGate
from proxy.memory.agent import Agent, Run, Task
from proxy.memory.auxiliary import is_auxiliary
from proxy.memory.change import Snapshot
from proxy.memory.evidence import Heard
from proxy.memory.inject import DECLINED, NOTE, WIPING, Block, place, render_block
from proxy.memory.instructions import Hint
from proxy.memory.listened import hear
from proxy.memory.pinned import Pinned, root_of
from proxy.memory.principal import Absent, Claim, Principal, identify
from proxy.memory.rate import Rate
from proxy.memory.recent import Recent
from proxy.memory.session import Session, Status
from proxy.memory.tally import RunTally
from proxy.memory.wishes import declines, means_everything
from proxy.memory.writer import Errand, Writer
from proxy.memory_settings import Memory as Settings
from proxy.plan.chain import chain_hashes
from proxy.plan.envelope import Envelope, read_messages
from proxy.plan.exchange import ChatRequest
from proxy.plan.policy import Policy
from proxy.upstream.target import Target
from proxy.wire import JSONObject

if TYPE_CHECKING:  # SQLAlchemy: 0.3 s and 25 MB, only where memory is on
    from proxy.memory.bank import Bank

STORE_SECONDS = 0.5
"""Longest wait for a slow store before the answer goes on without memories."""

UNGATED = Gated("pass")
"""Where the operator wants no gate, the agent reads every message."""

Spawn = Callable[..., bool]
MakeWriter = Callable[["Brought"], Writer]


@dataclass(frozen=True, slots=True)
class Brought:
    """What a turn knows of its request."""

    request: ChatRequest
    envelope: Envelope
    policy: Policy
    target: Target
    model: str
    user: str | None
    companion: Companion | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """The collaborators."""

    bank: "Bank"
    pinned: Pinned
    judge: TurnJudge
    make_writer: MakeWriter
    spawn: Spawn
    log: FilteringBoundLogger
    runs: RunTally


@dataclass(frozen=True, slots=True)
class _Scene:
    """A conversation as memory sees it; `newest` when it ends with what the user said last."""

    brought: Brought
    whose: Principal
    messages: Sequence[JSONObject]
    links: Sequence[str]
    heard: Listened | None
    snapshot: Snapshot

    @property
    def newest(self) -> bool:
        return self.heard is not None and self.heard.position == len(self.messages) - 1

    @property
    def link(self) -> str:
        return self.links[self.heard.position] if self.heard else ""

    @property
    def chain(self) -> str:
        """What tells a repeat of the message from the same words in another conversation."""
        named = self.brought.policy.conversation_id
        return f"{named}:{self.link}" if named else self.link


class MemoryService:
    """Begins sessions, and runs the memory agent behind them."""

    def __init__(self, parts: Parts, settings: Settings, gate: MemoryGate) -> None:
        self._parts = parts
        self._settings = settings
        self._gate = gate
        self._agent = Agent(parts.bank, settings)
        self._rate = Rate(settings.runs_per_minute)
        self._locks: WeakValueDictionary[Principal, asyncio.Lock] = WeakValueDictionary()
        self._running = 0
        self.recent = Recent()

    async def begin(self, brought: Brought) -> Session | None:
        """The session of a turn; None for a request that is not understood.

        Raises BadRequest when the request names two users and that is to be refused.
        """
        messages = read_messages(brought.envelope.raw("messages"))
        if not messages or not brought.envelope.spliceable:
            return None
        session = Session(brought.request.request_id, None)
        reason = await self._open(brought, messages, session)
        if reason is not None:
            session.status, session.reason = "off", reason
            session.settle()
        if session.status == "busy":
            self._parts.runs.refuse("busy")
        return session

    async def _open(
        self, brought: Brought, messages: Sequence[JSONObject], session: Session
    ) -> str | None:
        """Everything for one session; the reason when there is to be none."""
        if brought.policy.memory == "off":
            return "asked"
        body = {
            key: brought.envelope.get(key)
            for key in ("user", "metadata", "safety_identifier")
            if key in brought.envelope
        }
        body["messages"] = messages
        if is_auxiliary(body, messages):
            return "auxiliary"
        request = brought.request
        policy = brought.policy
        claim = Claim(
            request.caller, request.headers, brought.user, policy.app, body, policy.project
        )
        whose = identify(claim, self._settings)
        if isinstance(whose, Absent):
            return whose.reason
        try:
            async with asyncio.timeout(STORE_SECONDS):
                snapshot = await self._recall(whose)
        except (Unavailable, TimeoutError):
            return "unavailable"
        if not snapshot.person.enabled:
            return "opted_out"
        links = chain_hashes(messages)
        scene = _Scene(brought, whose, messages, links, listen(messages), snapshot)
        session.whose = whose
        session.late = self.recent.owe
        session.join_seconds = self._settings.join_ms / 1000
        session.conversation = brought.policy.conversation_id
        session.attachments = brought.policy.events == "attachment"
        session.owe(self.recent.collect(whose))
        await self._inject(scene, session, await self._judge(scene, session))
        return None

    async def _recall(self, whose: Principal) -> Snapshot:
        """What is remembered, with what the user has outside any app or project if wanted."""
        own = await self._parts.bank.read(whose)
        if not whose.scope or not self._settings.read_user:
            return own
        return own.over(await self._parts.bank.read(replace(whose, scope="")))

    def _may(self, brought: Brought, what: str) -> bool:
        """Whether both the operator and the request allow reading, or writing."""
        mode = self._settings.mode
        allowed = mode in {"on", what} or (mode == "observe" and what == "write")
        return allowed and brought.policy.memory in {None, "full", what}

    async def _judge(self, scene: _Scene, session: Session) -> str:
        """Have the newest message judged, once, and let the rest follow in the background.

        What the model is to be told of it, as far as that is known in time.
        """
        session.status = "read"
        if self._may(scene.brought, "write") and scene.snapshot.person.writable:
            session.status = self._start(scene)
        if session.status == "pending" and scene.heard and declines(scene.heard.latest):
            session.status, session.reason = "skip", "declined"
        if session.status != "pending":
            session.settle()
            return DECLINED if session.reason == "declined" else ""
        assert scene.heard is not None
        pending, seconds = await self._ask(scene, scene.heard)
        if not self._spawn(scene, session, pending):
            session.status = "busy"
            session.settle()
            return ""
        if pending is None:
            return ""
        gated = self._read(scene, await pending.wait(seconds))
        if gated.probability is None:
            return ""
        session.score = gated.probability
        if session.status == "pending":
            session.status = gated.status
        if gated.status != "pass" or self._settings.mode == "observe":
            return ""
        return WIPING if means_everything(Heard(scene.heard.latest)) else NOTE

    def _start(self, scene: _Scene) -> Status:
        """Whether there is something to judge that was not judged before."""
        if scene.heard is None:
            return "idle"
        if not scene.newest:
            return "memoised"
        return "busy" if self._running >= self._settings.queue else "pending"

    def _spawn(self, scene: _Scene, session: Session, pending: Pending | None) -> bool:
        self._running += 1
        begun = self._parts.spawn(self._follow(scene, session, pending))
        if not begun:
            self._running -= 1
        return begun

    async def _ask(self, scene: _Scene, heard: Listened) -> tuple[Pending | None, float]:
        """Ask the judge, together with what else the turn asks it; and how long to wait for it.

        A turn that waits for its tools anyway waits no longer when it waits for both here.
        """
        caller, whose = scene.brought.request.caller, scene.whose
        companion = scene.brought.companion
        asking = Asking(
            latest=heard.latest,
            conversation=heard.conversation,
            chain=f"memory:{whose!r}:{scene.chain}",
            purpose=Purpose(
                "memory_gate",
                request_id=scene.brought.request.request_id,
                tenant=caller.tenant,
                key=caller.key,
                user=whose.user,
            ),
            tools=await companion.candidates() if companion is not None else (),
            memory_keys=self._keys(scene),
        )
        started = self._parts.judge.start(asking)
        seconds = self._settings.note_ms / 1000
        if companion is not None:
            companion.adopt(started.tools)
            if started.tools is started.memory is not None:
                seconds = max(seconds, companion.seconds)
        return started.memory, seconds

    def _keys(self, scene: _Scene) -> Mapping[str, str | None]:
        """The keys that a request may be about: the allowed ones, else those that are there."""
        return self._settings.valid_keys or {m.key: None for m in scene.snapshot.memories}

    def _read(self, scene: _Scene, verdict: Verdict) -> Gated:
        return read_gate(verdict, self._gate, self._keys(scene))

    async def _inject(self, scene: _Scene, session: Session, note: str) -> None:
        """Put in what belongs in, and exactly what stood there before."""
        reads = self._may(scene.brought, "read") and self._settings.placement != "none"
        block = await self._block(scene) if reads else Block("")
        session.dropped = block.dropped
        tails = await self._tails(scene, block, note)
        text = block.text if self._settings.placement == "system" else ""
        if not text and not any(tails.values()):
            return
        envelope = scene.brought.envelope
        placed = place(envelope.raw("messages") or b"[]", scene.messages, text, tails)
        session.body = envelope.edit({"messages": placed})
        session.injected = (text + "".join(tails.values())).count('\n{"key":')

    async def _tails(self, scene: _Scene, block: Block, note: str) -> dict[int, str]:
        """What stands at the end of user messages; decided for each once, and then for good."""
        links = {
            position: scene.links[position]
            for position, message in enumerate(scene.messages)
            if message.get("role") == "user"
        }
        tails = await self._parts.pinned.tails(scene.whose, links)
        if scene.heard is None or not scene.newest or scene.heard.position in tails:
            return tails
        parts = [note]
        if self._settings.placement == "user_tail":
            stands = any(block.text in tail for tail in tails.values())
            parts = ["" if stands else block.text, note]
        text = "\n\n".join(part for part in parts if part)
        tails[scene.heard.position] = await self._parts.pinned.keep_tail(
            scene.whose, scene.link, text
        )
        return tails

    async def _block(self, scene: _Scene) -> Block:
        """This conversation's block: the one that stands, or a fresh one."""
        root, wipes = root_of(scene.links), scene.snapshot.person.wipes
        began = any(message.get("role") == "assistant" for message in scene.messages)
        block = await self._parts.pinned.block(scene.whose, root, wipes) if began else None
        if block is None:
            block = render_block(scene.snapshot, self._settings.inject_tokens)
            await self._parts.pinned.keep_block(scene.whose, root, block, wipes)
        return block

    async def _follow(self, scene: _Scene, session: Session, pending: Pending | None) -> None:
        """The gate's verdict, and the agent's run if it lets the message through."""
        run = Run()
        try:
            gated = UNGATED
            if pending is not None:
                gated = self._read(scene, await pending.wait(self._gate.timeout_ms / 1000))
            session.score = gated.probability
            session.status = gated.status
            if gated.runs and self._settings.mode != "observe":
                run = await self._run(scene, session, gated)
        except Unavailable:
            session.status, session.reason = "off", "unavailable"
        finally:
            self._running -= 1
            self.recent.note(session, run)
            session.settle(run.outcomes)

    async def _run(self, scene: _Scene, session: Session, gated: Gated) -> Run:
        bank, whose = self._parts.bank, scene.whose
        if gated is not UNGATED and not self._rate.allow(whose):
            session.status = "rate_limited"
            self._parts.runs.refuse("rate_limited")
            return Run()
        lock = self._locks.setdefault(whose, asyncio.Lock())
        async with lock:
            if not await bank.claim(whose, scene.chain, session.request_id):
                session.status = "memoised"
                return Run()
            run = Run(failure="aborted")
            try:
                run = await self._agent.run(self._task(scene, gated), self._writer(scene))
            except Unavailable:
                run = Run(failure="unavailable")
                raise
            finally:
                self._parts.runs.end(run)
                await bank.settle(whose, scene.chain, describe(gated, run))
            if run.failure is not None:
                self._parts.log.warning("memory_agent_failed", outcome=run.failure)
            return run

    def _writer(self, scene: _Scene) -> Writer:
        return self._parts.make_writer(scene.brought)

    def _task(self, scene: _Scene, gated: Gated) -> Task:
        assert scene.heard is not None
        errand = Errand(
            scene.whose, scene.brought.request.request_id, scene.brought.request.caller.key
        )
        hint = Hint(gated.key, gated.update, gated.forget)
        return Task(hear(scene.heard, self._settings.window), errand, hint, gated.probability)


def describe(gated: Gated, run: Run) -> JSONObject:
    """How it ended, without a value."""
    return {
        "status": gated.status if run.failure is None else f"{gated.status}:{run.failure}",
        "score": gated.probability,
        "hint": gated.key,
        "detail": {
            "calls": run.calls,
            "outcomes": [[o.kind, o.key, o.reason] for o in run.outcomes],
        },
    }
