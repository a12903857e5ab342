"""One request per user message, two who wait for it."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from proxy.judge.failures import Failure
from proxy.judge.fused import (
    REMEMBERED_TEXTS,
    REMEMBERED_TURNS,
    Asking,
    Candidate,
    Pending,
    Said,
    Texts,
    TurnJudge,
    build_state,
    fits_name,
    memory_questions,
    pick_candidates,
    tool_questions,
)
from proxy.judge.job import Purpose
from proxy.judge.questions import Choice, ChoiceAnswer, Noul, NoulAnswer
from proxy.judge.verdict import Verdict
from proxy.judge.wording import load_wordings
from proxy.judge_settings import Classification
from proxy.tools.rank import Document, build_lexical
from tests.judge.fakes import Books, Fixed, Silence, make_judge, native

pytestmark = pytest.mark.anyio

WORDINGS = load_wordings()
ON = Classification.model_validate({"enabled": True, "toolSelection": {"enabled": True}})
TOOLS = [Candidate("send_mail", "Send  an\n e-mail", 3.0), Candidate("list_files", "", 0.0)]
ANSWERS = {
    "needs_tool": NoulAnswer(0.9),
    "tool": ChoiceAnswer(
        "send_mail", {"send_mail": 0.9, "list_files": 0.05, "none_of_these": 0.05}
    ),
    "memory_request": NoulAnswer(0.1),
    "memory_key": ChoiceAnswer("location"),
    "memory_update": NoulAnswer(0.1),
    "memory_forget": NoulAnswer(0.1),
}


def asking(**changes: Any) -> Asking:
    facts: dict[str, Any] = {
        "latest": "yes, send it",
        "conversation": [Said("assistant", "Shall I send the e-mail?")],
        "chain": "c1",
        "purpose": Purpose("", request_id="r", tenant="t", user="u"),
        "tools": TOOLS,
        "memory_keys": {"location": None, "work": "their work"},
    }
    return Asking(**{**facts, **changes})


class Group:
    """The application's task group."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []

    def __call__(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))


def turn_judge(
    backend: Any, settings: Classification = ON, books: Books | None = None
) -> TurnJudge:
    return TurnJudge(make_judge(backend, books=books), settings, WORDINGS, Group())


async def test_one_request_asks_everything() -> None:
    """Tools and memory share it, so the state is paid once."""
    backend, books = Fixed(ANSWERS), Books()
    started = turn_judge(backend, books=books).start(asking())
    assert started.tools is started.memory
    assert started.tools is not None
    verdict = await started.tools.wait(1)
    assert set(backend.asked[0].questions) == set(ANSWERS)
    assert verdict.ok
    assert len(books.rows) == 1
    assert (backend.asked[0].purpose.name, backend.asked[0].purpose.user) == ("turn", "u")


async def test_unfused_it_is_two() -> None:
    """Each with its own deadline, as in the seed's bill: twelve rows for six turns."""
    books = Books()
    judge = turn_judge(Fixed(ANSWERS), ON.model_copy(update={"fuse": False}), books)
    for turn in range(6):
        started = judge.start(asking(chain=f"c{turn}"))
        assert started.tools is not None
        assert started.memory is not None
        assert started.tools is not started.memory
        await started.tools.wait(1)
        await started.memory.wait(1)
    assert [row.context for row in books.rows] == ["classification"] * 12
    purposes = [row.detail["purpose"] for row in books.rows if row.detail]
    assert purposes == ["tool_selection", "memory_gate"] * 6


async def test_a_user_message_is_judged_once() -> None:
    """The steps of a tool loop repeat it; another user's or tenant's is another one."""
    backend = Fixed(ANSWERS)
    judge = turn_judge(backend)
    first = judge.start(asking())
    assert judge.start(asking()) is first
    other = judge.start(asking(purpose=Purpose("", tenant="other", user="u")))
    assert other is not first
    assert judge.start(asking(chain="c2")) is not first


async def test_tools_wait_shortly_and_the_gate_longer() -> None:
    """A slow judgment still reaches whoever has the time."""
    pending = Pending()
    assert (await pending.wait(0.01)).failure is Failure.TIMEOUT
    waiting = asyncio.get_running_loop().create_task(pending.wait(1))
    await asyncio.sleep(0)
    pending.settle(Verdict({"memory_request": NoulAnswer(0.9)}))
    assert (await waiting).noul("memory_request") == 0.9
    assert (await pending.wait(0)).ok


async def test_everybody_who_waits_is_told() -> None:
    """One that gave up, and one whose client has gone, are no hindrance."""
    pending = Pending()
    loop = asyncio.get_running_loop()
    short, gone, first, second = (
        loop.create_task(pending.wait(seconds)) for seconds in (0.0, 1.0, 1.0, 1.0)
    )
    assert (await short).failure is Failure.TIMEOUT
    gone.cancel()
    await asyncio.sleep(0)
    pending.settle(Verdict())
    assert (await first).ok
    assert (await second).ok
    assert gone.cancelled()


async def test_a_cancelled_judgment_wakes_who_waits() -> None:
    """Shutdown leaves nobody hanging."""
    group = Group()
    judge = TurnJudge(make_judge(native(Silence())), ON, WORDINGS, group)
    started = judge.start(asking())
    assert started.tools is not None
    await asyncio.sleep(0)
    group.tasks[0].cancel()
    assert (await started.tools.wait(1)).failure is Failure.ABORTED
    with pytest.raises(asyncio.CancelledError):
        await group.tasks[0]


async def test_what_is_not_asked_is_not_started() -> None:
    """No tools, no memory, or switched off."""
    judge = turn_judge(Fixed(ANSWERS))
    assert judge.start(asking(tools=(), chain="a")).tools is None
    assert judge.start(asking(memory_keys=None, chain="b")).memory is None
    nothing = judge.start(asking(tools=(), memory_keys=None, chain="c"))
    assert (nothing.tools, nothing.memory) == (None, None)


def test_the_newest_message_and_what_fits_before_it() -> None:
    """Six earlier messages, 800 characters each, 6,000 in all; the oldest are left out."""
    earlier = [Said("user", f"{i} " + "x" * 2_000) for i in range(10)]
    state = build_state("latest " + "y" * 9_000, earlier, ON)
    assert state["latest"].startswith("latest")
    assert len(state["latest"]) <= 3_010
    contents = [said["content"] for said in state["conversation"]]
    assert [content[0] for content in contents] == ["7", "8", "9"]
    assert all(len(content) < 810 for content in contents)
    short = build_state("hi", [Said("user", str(i)) for i in range(10)], ON)
    assert [said["content"] for said in short["conversation"]] == list("456789")
    assert build_state("hi", [], ON)["conversation"] == []
    none = ON.model_copy(update={"context_messages": 0})
    assert build_state("hi", earlier, none)["conversation"] == []


def test_tools_are_offered_with_short_descriptions_and_a_way_out() -> None:
    """And with our ranker's opinion, which is never sent."""
    questions = tool_questions(TOOLS, ON, WORDINGS, Texts(300))
    tool = questions["tool"]
    assert isinstance(tool, Choice)
    assert tool.options["send_mail"] == "Send an e-mail"
    assert tool.options["list_files"] is None
    assert tool.none == "none_of_these"
    assert tool.prior == {"send_mail": 3.0, "list_files": 0.0}
    assert tool_questions(TOOLS, Classification(), WORDINGS, Texts(300)) == {}


@pytest.mark.item("prediction/judge-many-options")
def test_at_most_64_tools_are_offered() -> None:
    """The best by rank."""
    many = [Candidate(f"t{i}", "x", float(i)) for i in range(235)]
    tool = tool_questions(many, ON, WORDINGS, Texts(300))["tool"]
    assert isinstance(tool, Choice)
    assert len(tool.options) == 65
    assert "t234" in tool.options
    assert "t0" not in tool.options


def test_one_question_per_tool() -> None:
    """When a turn needs two tools, none takes the other's probability."""
    per_tool = Classification.model_validate(
        {"tool_selection": {"enabled": True, "mode": "per_tool"}}
    )
    questions = tool_questions(TOOLS, per_tool, WORDINGS, Texts(300))
    assert list(questions) == ["needs_tool", fits_name("send_mail"), fits_name("list_files")]
    fits = questions[fits_name("send_mail")]
    assert isinstance(fits, Noul)
    assert "`send_mail`" in str(fits.instructions)


def test_memory_asks_as_much_as_it_may() -> None:
    """The key only where there are keys; the gate's question knows its built-in model."""
    every = memory_questions({"location": None}, ON, WORDINGS)
    assert list(every) == ["memory_request", "memory_key", "memory_update", "memory_forget"]
    request = every["memory_request"]
    assert isinstance(request, Noul)
    assert request.embedded == "memory_request"
    assert "memory_key" not in memory_questions({}, ON, WORDINGS)
    bare = {"memory_gate": {"categorize": False, "detectUpdates": False}}
    small = Classification.model_validate(bare)
    assert list(memory_questions({"location": None}, small, WORDINGS)) == ["memory_request"]
    off = Classification.model_validate({"memory_gate": {"enabled": False}})
    assert memory_questions({}, off, WORDINGS) == {}


def test_candidates_are_named_ones_then_by_rank_then_the_rest() -> None:
    """Without those that are loaded already."""
    documents = [Document(f"tool_{i}", "", f"Does thing {i}", None) for i in range(6)]
    documents.append(Document("send_mail", "", "Send an e-mail", None))
    index = build_lexical(documents)
    found = pick_candidates(index, "send an e-mail", 3, skip=["tool_0"], named=["tool_5"])
    assert [candidate.name for candidate in found] == ["tool_5", "send_mail", "tool_1"]
    assert found[1].score > 0


async def test_memory_of_turns_and_texts_is_bounded() -> None:
    """A busy gateway forgets the oldest; a judgment is repeated, never mixed up."""
    judge = turn_judge(Fixed(ANSWERS))
    first = judge.start(asking(tools=(), memory_keys=None, chain="first"))
    for turn in range(REMEMBERED_TURNS):
        judge.start(asking(tools=(), memory_keys=None, chain=str(turn)))
    assert judge.start(asking(tools=(), memory_keys=None, chain="first")) is not first
    texts = Texts(5)
    for number in range(REMEMBERED_TEXTS + 1):
        assert texts[str(number)]
    assert texts["a  longer text"] == "a lon"
