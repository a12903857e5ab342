"""A turn's newest message in; one request with everything that is to be judged about it out.

One task judges, two wait for it: the choice of tools for its short time before the turn goes on,
the memory gate for its longer one beside the answer. A user message is judged once, however many
steps of a tool loop follow it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from proxy.judge.ask import Judge
from proxy.judge.deadline import Deadline
from proxy.judge.failures import Failure
from proxy.judge.fit import clip
from proxy.judge.job import Purpose
from proxy.judge.questions import Question, State
from proxy.judge.verdict import Verdict
from proxy.judge.wording import Wordings
from proxy.judge_settings import Classification
from proxy.tools.rank import Index
from proxy.wire import JSONObject

Spawn = Callable[[Coroutine[Any, Any, None]], object]
"""Runs a coroutine in the application's own task group."""

NEEDS_TOOL, TOOL, TOOL_FITS = "needs_tool", "tool", "tool_fits"
MEMORY_REQUEST, MEMORY_KEY, MEMORY_UPDATE = "memory_request", "memory_key", "memory_update"
MEMORY_FORGET = "memory_forget"
GATE_MODEL = "memory_request"
"""The built-in model that can answer the gate's question."""
REMEMBERED_TURNS = 2_048
REMEMBERED_TEXTS = 16_384


class Said(msgspec.Struct, frozen=True):
    """An earlier message as a judge reads it."""

    role: str
    text: str


class Candidate(msgspec.Struct, frozen=True):
    """A tool that may be chosen, with our ranker's score."""

    name: str
    description: str
    score: float


class Asking(msgspec.Struct, frozen=True):
    """What is to be judged about a user message.

    `chain` identifies the message within its conversation; `tools` empty or `memory_keys` None
    leave that part out.
    """

    latest: str
    conversation: Sequence[Said]
    chain: str
    purpose: Purpose
    tools: Sequence[Candidate] = ()
    memory_keys: Mapping[str, str | None] | None = None


class Pending:
    """A judgment under way."""

    def __init__(self) -> None:
        self._verdict: Verdict | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def settle(self, verdict: Verdict) -> None:
        """Wake everybody who waits."""
        self._verdict = verdict
        for waiter in self._waiting:
            _wake(waiter)

    async def wait(self, seconds: float) -> Verdict:
        """The verdict, or an empty one with failure `timeout`; the judgment itself goes on."""
        if self._verdict is None:
            loop = asyncio.get_running_loop()
            waiter = loop.create_future()
            timer = loop.call_later(seconds, _wake, waiter)
            self._waiting.append(waiter)
            try:
                await waiter
            finally:
                timer.cancel()
                self._waiting.remove(waiter)
        return self._verdict or Verdict(failure=Failure.TIMEOUT)


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


class Companion(Protocol):
    """Another question about the same message, which may share its request."""

    @property
    def seconds(self) -> float:
        """How long the turn waits for its answer anyway."""

    async def candidates(self) -> Sequence[Candidate]:
        """The tools to choose from; nothing when there is nothing to ask."""

    def adopt(self, pending: Pending | None) -> None:
        """It was asked; None when it was not."""


class Judgments(msgspec.Struct, frozen=True):
    """What was started for a turn; fused, both are the same."""

    tools: Pending | None
    memory: Pending | None


class TurnJudge:
    """Starts a turn's judgments."""

    def __init__(
        self, judge: Judge, settings: Classification, wordings: Wordings, spawn: Spawn
    ) -> None:
        self._judge = judge
        self._settings = settings
        self._wordings = wordings
        self._spawn = spawn
        self._texts = Texts(settings.tool_selection.description_chars)
        self._known: OrderedDict[tuple[str, str, str | None], Judgments] = OrderedDict()

    def start(self, asking: Asking) -> Judgments:
        """Start judging, or return what was started for this message before."""
        key = (asking.purpose.tenant, asking.chain, asking.purpose.user)
        known = self._known.get(key)
        if known is not None:
            return known
        started = self._start(asking)
        self._known[key] = started
        if len(self._known) > REMEMBERED_TURNS:
            self._known.popitem(last=False)
        return started

    def _start(self, asking: Asking) -> Judgments:
        settings = self._settings
        tools = tool_questions(asking.tools, settings, self._wordings, self._texts)
        memory = memory_questions(asking.memory_keys, settings, self._wordings)
        state = build_state(asking.latest, asking.conversation, settings)
        if settings.fuse and tools and memory:
            both = self._run(state, tools | memory, asking.purpose, "turn")
            return Judgments(both, both)
        return Judgments(
            self._run(state, tools, asking.purpose, "tool_selection"),
            self._run(state, memory, asking.purpose, "memory_gate"),
        )

    def _run(
        self, state: State, questions: Mapping[str, Question], purpose: Purpose, name: str
    ) -> Pending | None:
        if not questions:
            return None
        pending = Pending()
        deadline = Deadline.after(self._seconds(name))

        async def judge() -> None:
            named = replace(purpose, name=name)
            verdict = Verdict(failure=Failure.ABORTED)
            try:
                verdict = await self._judge.decide(state, questions, deadline, named)
            finally:
                pending.settle(verdict)

        self._spawn(judge())
        return pending

    def _seconds(self, name: str) -> float:
        tools = self._settings.tool_selection.timeout_ms
        memory = self._settings.memory_gate.timeout_ms
        spans = {"tool_selection": tools, "memory_gate": memory}
        return spans.get(name, max(tools, memory)) / 1000


def build_state(latest: str, conversation: Sequence[Said], settings: Classification) -> JSONObject:
    """What the judge reads: the newest message, and what came before it as far as it fits."""
    latest = clip(latest, max(settings.message_chars, settings.state_chars // 2))
    room = settings.state_chars - len(latest)
    kept: list[JSONObject] = []
    for said in reversed(conversation[-settings.context_messages :] if conversation else ()):
        text = clip(said.text, settings.message_chars)
        room -= len(text)
        if room < 0 or len(kept) == settings.context_messages:
            break
        kept.append({"role": said.role, "content": text})
    return {"latest": latest, "conversation": kept[::-1]}


def pick_candidates(
    index: Index, query: str, most: int, *, skip: Collection[str] = (), named: Sequence[str] = ()
) -> list[Candidate]:
    """The tools worth offering: named ones, then by rank, then the rest while there is room."""
    documents = index.documents
    scores = {hit.position: hit.score for hit in index.rank(query, most + len(skip))}
    first = [i for i, document in enumerate(documents) if document.name in named] if named else ()
    liked = dict.fromkeys(chain(first, scores))
    rest = (i for i in range(len(documents)) if i not in liked)
    free = (i for i in chain(liked, rest) if documents[i].name not in skip)
    return [
        Candidate(documents[i].name, documents[i].description, scores.get(i, 0.0))
        for i in islice(free, most)
    ]


class Texts(dict[str, str | None]):
    """Descriptions as a judge reads them: on one line and at most so long, None when empty.

    A description is shortened when it is first looked up, and then remembered.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __missing__(self, text: str) -> str | None:
        if len(self) >= REMEMBERED_TEXTS:
            self.clear()
        line = " ".join(text[: 2 * self._most].split())
        self[text] = short = line[: self._most].rstrip() or None
        return short


def tool_questions(
    tools: Sequence[Candidate], settings: Classification, wordings: Wordings, known: Texts
) -> dict[str, Question]:
    """Is a tool needed, and which; nothing when there is nothing to choose from."""
    selection = settings.tool_selection
    if not tools or not selection.enabled:
        return {}
    best = tools
    if len(tools) > selection.max_options:
        best = sorted(tools, key=lambda tool: -tool.score)[: selection.max_options]
    texts = {tool.name: known[tool.description] for tool in best}
    questions: dict[str, Question] = {NEEDS_TOOL: wordings[NEEDS_TOOL].noul()}
    if selection.mode == "per_tool":
        fits = wordings[TOOL_FITS]
        return questions | {
            fits_name(name): fits.noul(tool=name, description=text or name)
            for name, text in texts.items()
        }
    prior = {tool.name: tool.score for tool in best}
    return questions | {TOOL: wordings[TOOL].choice(texts, prior)}


def memory_questions(
    keys: Mapping[str, str | None] | None, settings: Classification, wordings: Wordings
) -> dict[str, Question]:
    """Does the user ask for a change of what is remembered; under which key; is it an update."""
    gate = settings.memory_gate
    if keys is None or not gate.enabled:
        return {}
    questions: dict[str, Question] = {MEMORY_REQUEST: wordings[MEMORY_REQUEST].noul(GATE_MODEL)}
    if gate.categorize and keys:
        questions[MEMORY_KEY] = wordings[MEMORY_KEY].choice(keys)
    if gate.detect_updates:
        questions[MEMORY_UPDATE] = wordings[MEMORY_UPDATE].noul()
        questions[MEMORY_FORGET] = wordings[MEMORY_FORGET].noul()
    return questions


def fits_name(tool: str) -> str:
    """The id of the question whether one tool fits."""
    return f"{TOOL_FITS}.{tool}"


def is_fits(question: str) -> bool:
    """Whether that is the id of such a question."""
    return question.startswith(f"{TOOL_FITS}.")
