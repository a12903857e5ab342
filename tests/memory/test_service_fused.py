"""Tools and memory are judged in one request, and neither waits longer than it did alone."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest

from proxy.app import Gateway, build_gateway
from proxy.errors import ConnectFailed
from proxy.ledger.priced import Listeners
from proxy.ledger.usage import Row
from proxy.memory.inject import NOTE_TAG
from proxy.settings import Settings
from proxy.upstream.transport import Prepared, UpstreamRequest
from proxy.wire import JSONObject
from tests.edge.driver import CHAT, Answered, ask
from tests.turns import JSON_TYPE, call, completion, request

pytestmark = pytest.mark.anyio

JUDGE = "http://judge.test/v1/systemone"
TOOLS = {"needs_tool", "tool"}
MEMORY = {"memory_request", "memory_update", "memory_forget"}
ASKED = "Remember that I live in Rome, and delete my mail."
Judge = Callable[[JSONObject], JSONObject]


def judge_all(asked: JSONObject) -> JSONObject:
    """A judge that knows what the questions are about."""
    wish = "remember" in asked["state"]["latest"].lower()
    answers: JSONObject = {}
    for name, question in asked["questions"].items():
        if question["type"] == "noul":
            answers[name] = {"type": "noul", "noul": 0.9 if wish or name == "needs_tool" else 0.02}
            continue
        best = "mail_delete" if name == "tool" else next(iter(question["criteria"]))
        shares = {label: 0.9 * (label == best) for label in question["criteria"]}
        shares["none_of_these"] = 0.1
        answers[name] = {"type": "choice", "choice": best, "probabilities": shares}
    return {"model": "jev-1", "answers": answers, "usage": {"input_tokens": 140}}


@dataclass(slots=True)
class Town:
    """The upstream, the judge, and the memory agent's model, which stores where the user lives."""

    judge: Judge | None = judge_all
    delay: float = 0.0
    asked: list[JSONObject] = field(default_factory=list)
    bodies: list[JSONObject] = field(default_factory=list)
    written: int = 0
    reached: float = 0.0

    async def send(self, sent: UpstreamRequest) -> Prepared:
        assert isinstance(sent.body, bytes)
        body = orjson.loads(sent.body)
        if sent.url.startswith(JUDGE):
            self.asked.append(body)
            await asyncio.sleep(self.delay)
            if self.judge is None:
                raise ConnectFailed("nobody there")
            return Prepared(200, JSON_TYPE, orjson.dumps(self.judge(body)))
        if body["model"] == "writer":
            self.written += 1
            wish = {"key": "home", "value": "I live in Rome."}
            return completion(None, [call("set_memory", wish)])
        self.bodies.append(body)
        self.reached = time.perf_counter()
        return completion("Noted.")

    async def aclose(self) -> None: ...

    @property
    def questions(self) -> list[set[str]]:
        """The ids of each request to the judge."""
        return [set(body["questions"]) for body in self.asked]

    @property
    def tools(self) -> list[str]:
        """What the main model was given last."""
        return [tool["function"]["name"] for tool in self.bodies[-1]["tools"]]


@dataclass(frozen=True, slots=True)
class Rig:
    """A gateway in that town."""

    gateway: Gateway
    rows: list[Row]

    async def say(self, *messages: JSONObject | str, tools: bool = True) -> Answered:
        """One request of the user ali."""
        said = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
        body = request(*said) if tools else {"model": "m", "messages": said}
        headers = [("x-usher-user-id", "ali")]
        answered = await ask(self.gateway.app, "POST", CHAT, orjson.dumps(body), headers)
        assert answered.status == 200
        return answered

    async def stored(self) -> JSONObject:
        """What ali's memory holds, once everything is done."""
        await self.gateway.settle(5)
        headers = [("x-usher-user-id", "ali")]
        told = await ask(self.gateway.app, "GET", "/usher/memory", headers=headers)
        rows = orjson.loads(told.body)["memories"]
        return {row["key"]: row["value"] for row in rows}

    @property
    def judged(self) -> list[Row]:
        """The ledger's rows of judgments by the remote judge."""
        return [r for r in self.rows if r.context == "classification" and r.provider == "jev"]


@asynccontextmanager
async def open_rig(
    folder: Path, town: Town, join_ms: int = 3_000, **own: object
) -> AsyncIterator[Rig]:
    """A gateway that judges tools and memory; `own` are keys of `classification`."""
    settings = Settings.model_validate({
        "upstream": {"base_url": "http://up.test/v1", "retries": 0},
        "deferral": {"min_tools": 1, "small_chars": 0},
        "prediction": {"ranker": "lexical"},
        "memory": {"mode": "on", "agent": {"model": "writer"}, "join_ms": join_ms},
        "classification": {
            "enabled": True,
            "backend": "jev",
            "providers": {"jev": {"preset": "typesafe", "base_url": JUDGE, "api_key": "k"}},
            "max_retries": 0,
            "tool_selection": {"enabled": True, "timeout_ms": 2_000},
            **own,
        },
    })  # fmt: skip
    rows: list[Row] = []
    gateway = build_gateway(settings, folder, {"openai": town}, Listeners(calls=(rows.append,)))
    async with gateway.app.router.lifespan_context(gateway.app):
        yield Rig(gateway, rows)


def loop_step() -> tuple[JSONObject, JSONObject]:
    """The model's call and its result."""
    made: JSONObject = {"role": "assistant", "content": None, "tool_calls": [call("mail_delete")]}
    return made, {"role": "tool", "tool_call_id": "c1", "content": "gone"}


async def test_one_request_asks_everything(tmp_path: Path) -> None:
    """One request and one row for tools and memory; both act on it, and the model is warned."""
    town = Town()
    async with open_rig(tmp_path, town) as rig:
        answered = await rig.say(ASKED)
        assert town.questions == [TOOLS | MEMORY]
        assert town.tools == ["tool_search", "mail_delete"]
        assert NOTE_TAG in town.bodies[0]["messages"][-1]["content"]
        assert answered.headers["x-usher-memory"] == "pass"
        assert await rig.stored() == {"home": "I live in Rome."}
        row = rig.judged[0]
        assert (len(rig.judged), row.prompt_tokens, row.user) == (1, 140, "ali")
        assert row.detail is not None
        assert row.detail["purpose"] == "turn"


@pytest.mark.item("memory/tool-loop")
async def test_a_tool_loop_and_a_retry_ask_nothing(tmp_path: Path) -> None:
    """Once per user message: neither the loop's steps nor the same request again are judged."""
    town = Town()
    async with open_rig(tmp_path, town) as rig:
        await rig.say(ASKED)
        answered = await rig.say(ASKED, *loop_step())
        assert answered.headers["x-usher-memory"].startswith("memoised")
        await rig.say(ASKED)
        await rig.gateway.settle(5)
        assert town.tools == ["tool_search", "mail_delete"]
        assert (len(town.asked), town.written) == (1, 1)


@pytest.mark.item("memory/one-key")
async def test_what_is_stored_is_offered_as_keys(tmp_path: Path) -> None:
    """The next message is asked about with the keys that are there, and the agent gets the hint."""
    town = Town()
    async with open_rig(tmp_path, town) as rig:
        await rig.say(ASKED)
        await rig.stored()
        await rig.say("Remember that I moved to Rome.")
        assert town.questions[1] == TOOLS | MEMORY | {"memory_key"}
        assert "home" in town.asked[1]["questions"]["memory_key"]["criteria"]


async def test_unfused_two_requests(tmp_path: Path) -> None:
    """`fuse: false` asks for each apart, at the same time, with the same effect."""
    town = Town()
    async with open_rig(tmp_path, town, fuse=False) as rig:
        await rig.say(ASKED)
        assert await rig.stored() == {"home": "I live in Rome."}
        assert sorted(map(len, town.questions)) == [2, 3]
        assert town.tools == ["tool_search", "mail_delete"]
        purposes = [row.detail["purpose"] for row in rig.judged if row.detail]
        assert sorted(purposes) == ["memory_gate", "tool_selection"]


@pytest.mark.parametrize(
    ("own", "tools", "asked"),
    [
        pytest.param({"tool_selection": {"enabled": False}}, True, MEMORY, id="memory-only"),
        pytest.param({"memory_gate": {"enabled": False}}, True, TOOLS, id="tools-only"),
        pytest.param({}, False, MEMORY, id="request-without-tools"),
    ],
)
async def test_only_what_is_on_is_asked(
    own: JSONObject, tools: bool, asked: set[str], tmp_path: Path
) -> None:
    """A side that is off, or that a request has nothing for, adds no question."""
    town = Town()
    async with open_rig(tmp_path, town, **own) as rig:
        await rig.say(ASKED, tools=tools)
        await rig.gateway.settle(5)
        assert town.questions == [asked]


async def test_a_slow_judge_costs_one_short_deadline(tmp_path: Path) -> None:
    """After half a second the ranker predicts and the answer begins; the gate gets its verdict."""
    town = Town(delay=1.5)
    selection = {"enabled": True, "timeout_ms": 500}
    async with open_rig(tmp_path, town, tool_selection=selection) as rig:
        await rig.say("warm up", tools=False)
        began = time.perf_counter()
        await rig.say(ASKED)
        assert town.reached - began < 0.95
        assert NOTE_TAG not in town.bodies[-1]["messages"][-1]["content"]
        assert "mail_delete" in town.tools
        assert await rig.stored() == {"home": "I live in Rome."}
        assert len(town.asked) == 2


async def test_a_dead_judge_fails_both_softly(tmp_path: Path) -> None:
    """Tools come from the ranker, the gate from what is built in; one row says what happened."""
    town = Town(judge=None)
    async with open_rig(tmp_path, town) as rig:
        await rig.say("Please remember that I live in Rome. And send an e-mail to Ann.")
        assert "mail_send" in town.tools
        assert await rig.stored() == {"home": "I live in Rome."}
        assert [row.outcome for row in rig.judged] == ["network"]


@pytest.mark.parametrize("lie", ["memory_request", "tool"])
async def test_one_bad_answer_costs_its_own_question(lie: str, tmp_path: Path) -> None:
    """NaN about memory leaves the tools as judged, and a lie about tools leaves the gate."""

    def judge(asked: JSONObject) -> JSONObject:
        found = judge_all(asked)
        found["answers"][lie] = {"type": "noul", "noul": 7}
        return found

    town = Town(judge)
    async with open_rig(tmp_path, town) as rig:
        await rig.say(ASKED)
        assert await rig.stored() == {"home": "I live in Rome."}
        assert "mail_delete" in town.tools
        assert [row.outcome for row in rig.judged] == ["partial"]


async def test_users_share_no_judgment(tmp_path: Path) -> None:
    """The same words of two users are two judgments, each on its own account."""
    town = Town()
    async with open_rig(tmp_path, town) as rig:
        await rig.say(ASKED)
        body = orjson.dumps(request({"role": "user", "content": ASKED}))
        headers = [("x-usher-user-id", "eve")]
        await ask(rig.gateway.app, "POST", CHAT, body, headers)
        await rig.gateway.settle(5)
        rows = [r for r in rig.rows if r.context == "classification"]
        assert {row.user for row in rows} == {"ali", "eve"}


async def test_tools_that_were_judged_before_are_not_asked_about_again(tmp_path: Path) -> None:
    """A message that came without memory first is only asked about memory when it comes with it."""
    town = Town()
    async with open_rig(tmp_path, town) as rig:
        body = orjson.dumps(request({"role": "user", "content": ASKED}))
        off = [("x-usher-user-id", "ali"), ("x-usher-memory", "off")]
        await ask(rig.gateway.app, "POST", CHAT, body, off)
        await rig.say(ASKED)
        assert await rig.stored() == {"home": "I live in Rome."}
        assert town.questions == [TOOLS, MEMORY]
        assert town.tools == ["tool_search", "mail_delete"]


async def test_the_metrics_count_one_judgment(tmp_path: Path) -> None:
    """A fused request is one call of classification, beside the turn's and the agent's."""
    async with open_rig(tmp_path, Town()) as rig:
        await rig.say(ASKED)
        await rig.stored()
        told = (await ask(rig.gateway.app, "GET", "/metrics")).body.decode()
        counted = [line for line in told.splitlines() if 'context="classification"' in line]
        calls = [line for line in counted if line.startswith("usher_calls_total")]
        assert [line.rpartition(" ")[2] for line in calls] == ["1.0"]


async def test_a_silent_judge_is_waited_for_three_times(tmp_path: Path) -> None:
    """Later turns go on at once, although the gate's longer deadline has not even run out."""
    town = Town(delay=60.0)
    selection = {"enabled": True, "timeout_ms": 400}
    gate = {"timeout_ms": 3_000}
    async with open_rig(tmp_path, town, 0, tool_selection=selection, memory_gate=gate) as rig:
        waited = []
        for number in range(12):
            began = time.perf_counter()
            await rig.say(f"I sent mail {number}")
            waited.append(town.reached - began)
        assert sum(seconds > 0.39 for seconds in waited[:3]) == 3
        assert sum(seconds > 0.39 for seconds in waited[3:]) <= 1
