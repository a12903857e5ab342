"""A conversation comes in; the tools that a judge chose for its user messages go out."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from proxy.judge.ask import Judge
from proxy.judge.breaker import Patience
from proxy.judge.deadline import Deadline
from proxy.judge.failures import Failure
from proxy.judge.fused import Asking, Candidate, Pending, TurnJudge, pick_candidates
from proxy.judge.heard import Heard, listen
from proxy.judge.job import Purpose
from proxy.judge.select import Offer, measured, select_tools
from proxy.judge_settings import Classification
from proxy.memory.listened import clean
from proxy.plan.exchange import ChatRequest
from proxy.state.memory import Store
from proxy.tools.history import Asked, History
from proxy.tools.toolbox import Toolbox
from proxy.wire import JSONObject

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Question:
    """What a judge may choose from, and what our ranker would choose."""

    tools: Sequence[Candidate]
    offer: Offer


@dataclass(frozen=True, slots=True)
class Running:
    """A question that was asked, and how long the turn waits for its answer."""

    question: Question
    pending: Pending
    seconds: float
    until: Deadline


def run(question: Question, pending: Pending, seconds: float) -> Running:
    """It was asked just now."""
    return Running(question, pending, seconds, Deadline.after(seconds))


class Query:
    """The question about tools, offered to whoever asks a judge about the same message first."""

    def __init__(self, find: Callable[[], Awaitable[Question | None]], seconds: float) -> None:
        self._find = find
        self._seconds = seconds
        self._question: Question | None = None
        self.running: Running | None = None

    @property
    def seconds(self) -> float:
        """Longest time that the turn waits for its answer anyway."""
        return self._seconds

    async def candidates(self) -> Sequence[Candidate]:
        """The tools to choose from; nothing when there is nothing to ask."""
        self._question = await self._find()
        return self._question.tools if self._question is not None else ()

    def adopt(self, pending: Pending | None) -> None:
        """It was asked."""
        if self._question is not None and pending is not None:
            self.running = run(self._question, pending, self._seconds)


@dataclass(frozen=True, slots=True)
class Scene:
    """A conversation as far as advice needs it; `links` are its chain hashes."""

    request: ChatRequest
    toolbox: Toolbox
    history: History
    messages: Sequence[JSONObject]
    links: Sequence[str]
    query: Query | None = None


class Waiting:
    """How long turns wait for a judge: not at all for a while, after it came too late too often.

    A judgment that memory shares goes on long after the tools were needed, so the judge's own
    breaker learns of a silent one only after several turns have waited for it.
    """

    def __init__(self, full: float, patience: Patience, clock: Clock = time.monotonic) -> None:
        self._full = full
        self._patience = patience
        self._clock = clock
        self._late = 0
        self._until = 0.0

    @property
    def seconds(self) -> float:
        """For the next turn."""
        return 0.0 if self._clock() < self._until else self._full

    def note(self, *, late: bool) -> None:
        """Whether the answer was there in time."""
        self._late = self._late + 1 if late else 0
        worn_out = self._late >= self._patience.failures
        self._until = self._clock() + self._patience.seconds if worn_out else 0.0


class Adviser:
    """Has the newest user message judged once, and remembers what was chosen for older ones.

    Without a remote judge, or while it fails, there is no advice and the ranker predicts.
    """

    def __init__(
        self, judge: Judge, turn_judge: TurnJudge, settings: Classification, store: Store
    ) -> None:
        self._judge = judge
        self._turn_judge = turn_judge
        self._settings = settings.tool_selection
        self._store = store
        patience = Patience(settings.breaker_failures, settings.breaker_seconds)
        self._waiting = Waiting(self._settings.timeout_ms / 1000, patience)

    @property
    def asks(self) -> bool:
        """Whether there is anybody to ask."""
        return self._settings.enabled and self._judge.remote

    @property
    def seconds(self) -> float:
        """Longest time that a turn waits now."""
        return self._waiting.seconds

    async def prepare(self, scene: Scene) -> Question | None:
        """What would be asked; None where nothing is, or was answered before."""
        heard = _newest(scene)
        if heard is None or heard.position in await self._known(scene):
            return None
        return self._question(scene, heard)

    async def advise(self, scene: Scene) -> Mapping[int, tuple[str, ...]]:
        """The chosen names by the position of the user message."""
        if not self.asks:
            return {}
        advice = await self._known(scene)
        heard = _newest(scene)
        if heard is None or heard.position in advice:
            return advice
        running = scene.query.running if scene.query is not None else None
        names = await self._choose(running or self._start(scene, heard))
        if names is not None:
            advice[heard.position] = names
            key = f"judged:{scene.links[heard.position]}"
            await self._store.put(scene.request.caller.tenant, key, orjson.dumps(names))
        return advice

    async def _known(self, scene: Scene) -> dict[int, tuple[str, ...]]:
        """What was chosen for user messages before."""
        asked = [event for event in scene.history.events if isinstance(event, Asked)]
        keys = {f"judged:{scene.links[event.position]}": event.position for event in asked}
        found = await self._store.get_many(scene.request.caller.tenant, list(keys))
        return {keys[key]: tuple(orjson.loads(value)) for key, value in found.items()}

    def _question(self, scene: Scene, heard: Heard) -> Question:
        cue = next(
            event.cue
            for event in scene.history.events
            if isinstance(event, Asked) and event.position == heard.position
        )
        predicted = scene.toolbox.predict(cue)
        tools = pick_candidates(
            scene.toolbox.index,
            heard.latest,
            self._settings.max_options,
            named=predicted.mentioned,
        )
        offer = Offer([tool.name for tool in tools], predicted.mentioned, predicted.names)
        return Question(tools, offer)

    def _start(self, scene: Scene, heard: Heard) -> Running | None:
        question = self._question(scene, heard)
        caller = scene.request.caller
        started = self._turn_judge.start(
            Asking(
                latest=heard.latest,
                conversation=heard.conversation,
                chain=scene.links[heard.position],
                purpose=Purpose(
                    "tool_selection",
                    request_id=scene.request.request_id,
                    tenant=caller.tenant,
                    key=caller.key,
                    user=caller.user,
                ),
                tools=question.tools,
            )
        )
        if started.tools is None:
            return None
        return run(question, started.tools, self.seconds)

    async def _choose(self, running: Running | None) -> tuple[str, ...] | None:
        """The judge's choice; None when it had none to offer in time."""
        if running is None:
            return None
        verdict = await running.pending.wait(running.until.remaining())
        silent = verdict.failure is Failure.TIMEOUT and not verdict.answers
        if running.seconds or not silent:
            self._waiting.note(late=silent)
        if not measured(verdict):
            return None
        return select_tools(verdict, running.question.offer, self._settings).names


@dataclass(frozen=True, slots=True)
class Predictor:
    """What to ship at a moment of the conversation: the judge's choice, else the ranker's.

    `forced` is the moment at which the client requires a call, whatever it needs.
    """

    toolbox: Toolbox
    advice: Mapping[int, tuple[str, ...]]
    on: bool
    forced: int | None

    def __call__(self, asked: Asked) -> Sequence[str]:
        """The names, best first."""
        if not self.on:
            return ()
        forced = asked.position == self.forced
        judged = self.advice.get(asked.position)
        if judged is None or (forced and not judged):
            return self.toolbox.predict(asked.cue, forced=forced).names
        return judged


def newest_moment(history: History) -> int | None:
    """Where something may be shipped last."""
    return next((e.position for e in reversed(history.events) if isinstance(e, Asked)), None)


def _newest(scene: Scene) -> Heard | None:
    """The newest user message, where it is what the turn answers and no step of a tool loop."""
    heard = listen(scene.messages)
    if heard is None or heard.position != len(scene.messages) - 1:
        return None
    return replace(heard, latest=clean(heard.latest))
