"""A judge that chooses tools can be slow, dead or lying, and the turn completes all the same."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from proxy.advise import Waiting
from proxy.app import Gateway, build_gateway
from proxy.errors import ConnectFailed
from proxy.judge.breaker import Patience
from proxy.ledger.priced import Listeners
from proxy.ledger.usage import Row
from proxy.settings import Settings
from proxy.upstream.transport import Prepared, UpstreamRequest
from proxy.wire import JSONObject
from tests.edge.driver import CHAT, Answered, ask
from tests.tools.samples import function
from tests.turns import JSON_TYPE, call, completion, events, request, search

pytestmark = pytest.mark.anyio

JUDGE = "http://judge.test/v1/systemone"


def _answers(names: dict[str, float], needs: float, asked: JSONObject) -> JSONObject:
    options = dict.fromkeys(asked["questions"]["tool"]["criteria"], 0.0)
    shares = {**options, **names, "none_of_these": max(0.0, 1 - sum(names.values()))}
    best = max(shares, key=lambda name: shares[name])
    return {
        "model": "jev-1",
        "answers": {
            "needs_tool": {"type": "noul", "noul": needs},
            "tool": {"type": "choice", "choice": best, "probabilities": shares},
        },
        "usage": {"input_tokens": 95, "output_tokens": 7},
    }


class Town:
    """Two servers: a chat model that plays its replies, and a judge."""

    def __init__(self, judge: Callable[[JSONObject], Prepared] | float | None) -> None:
        self.judge = judge
        self.replies: list[Prepared] = []
        self.bodies: list[JSONObject] = []
        self.judged = 0

    async def send(self, sent: UpstreamRequest) -> Prepared:
        assert isinstance(sent.body, bytes)
        if not sent.url.startswith(JUDGE):
            self.bodies.append(orjson.loads(sent.body))
            return self.replies.pop(0) if self.replies else completion("Hi")
        self.judged += 1
        if self.judge is None:
            raise ConnectFailed("nobody there")
        if isinstance(self.judge, float):
            await asyncio.sleep(self.judge)
            raise ConnectFailed("too late")
        return self.judge(orjson.loads(sent.body))

    async def aclose(self) -> None: ...

    def tools(self, number: int = -1) -> list[str]:
        """The names of the tools in an upstream body."""
        return [tool["function"]["name"] for tool in self.bodies[number]["tools"]]


def _judging(names: dict[str, float], needs: float = 0.9) -> Callable[[JSONObject], Prepared]:
    def judge(asked: JSONObject) -> Prepared:
        return Prepared(200, JSON_TYPE, orjson.dumps(_answers(names, needs, asked)))

    return judge


def _gateway(
    folder: Path, town: Town, timeout_ms: int = 300, heard: Listeners | None = None
) -> Gateway:
    tree = {
        "upstream": {"base_url": "http://up.test/v1", "retries": 0},
        "deferral": {"min_tools": 1, "small_chars": 0},
        "prediction": {"ranker": "lexical"},
        "classification": {
            "enabled": True,
            "backend": "jev",
            "providers": {"jev": {"preset": "typesafe", "base_url": JUDGE, "api_key": "k"}},
            "max_retries": 0,
            "tool_selection": {"enabled": True, "timeout_ms": timeout_ms},
        },
    }
    return build_gateway(Settings.model_validate(tree), folder, {"openai": town}, heard)


async def _ask(gateway: Gateway, body: JSONObject) -> Answered:
    answered = await ask(gateway.app, "POST", CHAT, orjson.dumps(body))
    assert answered.status == 200
    return answered


def _user(text: str) -> JSONObject:
    return {"role": "user", "content": text}


@pytest.mark.item("prediction/tool-results")
async def test_a_judge_chooses_the_tools(tmp_path: Path) -> None:
    """What it finds probable is shipped; a step of the tool loop is not judged again."""
    town = Town(_judging({"mail_delete": 0.8, "weather_alerts": 0.15, "mail_send": 0.01}))
    gateway = _gateway(tmp_path, town)
    await _ask(gateway, request(_user("hello there")))
    assert town.tools() == ["tool_search", "mail_delete", "weather_alerts"]
    made: JSONObject = {"role": "assistant", "content": None, "tool_calls": [call("mail_delete")]}
    result: JSONObject = {"role": "tool", "tool_call_id": "c1", "content": "gone"}
    await _ask(gateway, request(_user("hello there"), made, result))
    assert town.judged == 1
    assert town.tools()[:3] == ["tool_search", "mail_delete", "weather_alerts"]


async def test_no_tool_needed_means_named_ones_only(tmp_path: Path) -> None:
    """Small talk ships nothing, a tool that the user names is shipped all the same."""
    town = Town(_judging({"mail_delete": 0.9}, needs=0.02))
    gateway = _gateway(tmp_path, town)
    await _ask(gateway, request(_user("thanks")))
    assert town.tools() == ["tool_search"]
    await _ask(gateway, request(_user("thanks, mail_send was right")))
    assert town.tools() == ["tool_search", "mail_send"]


@pytest.mark.item(
    "prediction/judge-timeout",
    "prediction/judge-429",
    "prediction/judge-500",
    "prediction/judge-no-answers",
    "prediction/judge-no-json",
    "prediction/judge-nan",
    "prediction/judge-unknown-option",
    "prediction/judge-deadline",
)
@pytest.mark.parametrize(
    "judge",
    [
        pytest.param(None, id="dead"),
        pytest.param(5.0, id="slow"),
        pytest.param(lambda _: Prepared(401, JSON_TYPE, b"{}"), id="unauthorised"),
        pytest.param(lambda _: Prepared(429, JSON_TYPE, b"{}"), id="limited"),
        pytest.param(lambda _: Prepared(500, JSON_TYPE, b"oops"), id="broken"),
        pytest.param(lambda _: Prepared(200, JSON_TYPE, b"{}"), id="speechless"),
        pytest.param(lambda _: Prepared(200, JSON_TYPE, b'{"answers":'), id="cut"),
        pytest.param(_judging({"rm_rf": 3.0, "mail_send": -1.0}), id="lying"),
        pytest.param(lambda _: Prepared(200, JSON_TYPE, b'{"answers":{"tool":NaN}}'), id="nan"),
    ],
)
async def test_a_failing_judge_costs_no_more_than_its_deadline(
    judge: Callable[[JSONObject], Prepared] | float | None, tmp_path: Path
) -> None:
    """The ranker predicts then, and the client's answer is there."""
    town = Town(judge)
    began = time.perf_counter()
    gateway = _gateway(tmp_path, town)
    answered = await _ask(gateway, request(_user("send an e-mail to Ann")))
    assert time.perf_counter() - began < 3
    assert orjson.loads(answered.body)["choices"][0]["message"]["content"] == "Hi"
    assert "mail_send" in town.tools()
    assert "rm_rf" not in town.tools()


@pytest.mark.item("prediction/judge-deadline")
async def test_a_hundred_turns_against_a_dead_judge_wait_a_few_times(tmp_path: Path) -> None:
    """The breaker opens: at most four deadlines in all."""
    town = Town(5.0)
    gateway = _gateway(tmp_path, town, timeout_ms=200)
    began = time.perf_counter()
    for number in range(100):
        await _ask(gateway, request(_user(f"send mail {number}")))
    assert town.judged <= 4
    assert time.perf_counter() - began < 4 * 0.2 + 20


@pytest.mark.item("accounting/classification")
async def test_judgments_are_booked_apart(tmp_path: Path) -> None:
    """Rows of their own, and a stream whose usage is the same with and without them."""
    rows: list[Row] = []
    bodies = []
    for alive in (True, False):
        town = Town(_judging({"mail_delete": 0.9}) if alive else None)
        town.replies = [events(None, [search("storm")]), events("Done.", number=2)]
        gateway = _gateway(tmp_path, town, heard=Listeners(calls=(rows.append,)))
        body = request(_user("hi"), stream=True, stream_options={"include_usage": True})
        bodies.append((await _ask(gateway, body)).body)
    assert bodies[0] == bodies[1]
    judged = [row for row in rows if row.context == "classification"]
    assert (judged[0].prompt_tokens, judged[0].outcome) == (95, "ok")
    assert judged[1].outcome == "network"
    others = [row.context for row in rows if row.context != "classification"]
    assert others == ["search_round", "main"] * 2


@pytest.mark.item("prediction/judge-no-match", "prediction/judge-null-confidence")
async def test_a_judge_that_finds_no_fit(tmp_path: Path) -> None:
    """None of these is an answer: nothing is shipped, unless the client requires a call.

    A confidence of null is no failure.
    """

    def judge(asked: JSONObject) -> Prepared:
        reply = _answers({}, 0.9, asked)
        reply["answers"]["tool"]["confidence"] = None
        return Prepared(200, JSON_TYPE, orjson.dumps(reply))

    town = Town(judge)
    gateway = _gateway(tmp_path, town)
    await _ask(gateway, request(_user("send an e-mail to Ann")))
    assert town.tools() == ["tool_search"]
    await _ask(gateway, request(_user("send an e-mail to Bob"), tool_choice="required"))
    assert "mail_send" in town.tools()


@pytest.mark.parametrize("count", [253, 254, 255, 300])
@pytest.mark.item("prediction/judge-many-options")
async def test_a_judge_is_offered_what_it_can_take(count: int, tmp_path: Path) -> None:
    """A catalogue at and above its ceiling of 255 options is narrowed by our ranker first."""
    offered: list[JSONObject] = []

    def judge(asked: JSONObject) -> Prepared:
        offered.append(asked["questions"]["tool"]["criteria"])
        return _judging({"act_7": 0.9})(asked)

    town = Town(judge)
    tools = [function(f"act_{number}", f"Does thing {number}.") for number in range(count)]
    await _ask(_gateway(tmp_path, town), {**request(_user("do thing 7")), "tools": tools})
    assert len(offered[0]) <= 255
    assert "act_7" in town.tools()


def test_after_three_late_answers_turns_stop_waiting() -> None:
    """For half a minute; then one turn tries again, and one answer in time ends it."""
    now = [0.0]
    waiting = Waiting(2.5, Patience(3, 30.0), lambda: now[0])
    for _ in range(2):
        waiting.note(late=True)
    assert waiting.seconds == 2.5
    waiting.note(late=True)
    assert waiting.seconds == 0.0
    now[0] = 31.0
    assert waiting.seconds == 2.5
    waiting.note(late=True)
    assert waiting.seconds == 0.0
    waiting.note(late=False)
    assert waiting.seconds == 2.5
