"""Conversations teach: what their searches ended in is remembered and, if wished, written down."""

from pathlib import Path

import orjson
import pytest

from proxy.background import Background
from proxy.learner import Learner
from proxy.observe.capture import Capture
from proxy.observe.log import silent
from proxy.plan.identity import Caller
from proxy.settings import Settings
from proxy.tools.lessons import Lessons
from proxy.wire import JSONObject
from tests.turns import SETTINGS, Stage, call, completion, events, read, request, search, stage

pytestmark = pytest.mark.anyio

HELLO: JSONObject = {"role": "user", "content": "hello"}
TENANT = Caller().tenant


class School:
    """A learner, its lessons, and the background it works in."""

    def __init__(self, capture: Path | None = None) -> None:
        self.lessons = Lessons()
        self.background = Background(silent())
        written = Capture(capture, pytest.fail, lambda: 0.0) if capture else None
        self.learner = Learner(self.lessons, written, self.background.spawn)

    async def run(self, theatre: Stage, *bodies: JSONObject) -> None:
        """The requests one after the other, and what was begun beside them."""
        for body in bodies:
            await read(await theatre.chat(body))
        await self.background.drain(5)

    def recall(self, query: str) -> list[str]:
        return list(self.lessons.recall(TENANT, query))


@pytest.mark.parametrize("stream", [False, True])
async def test_a_search_that_ended_in_a_call_is_learned(stream: bool) -> None:
    """The query's words lead to the tool next time, for this tenant only."""
    make, school = events if stream else completion, School()
    found = make(None, [search("storm warnings")])
    used = make(None, [call("weather_alerts", {"region": "x"})], number=2)
    await school.run(stage(found, used, learner=school.learner), request(stream=stream))
    assert school.recall("storm warnings") == ["weather_alerts"]
    assert dict(school.lessons.recall("another", "storm warnings")) == {}


async def test_a_call_on_the_next_turn_is_learned_too() -> None:
    """The model found the tool, asked first, and called it then."""
    school = School()
    theatre = stage(
        completion(None, [search("storm warnings")]),
        completion("Shall I?", number=2),
        completion(None, [call("weather_alerts", {"region": "x"})], number=3),
        learner=school.learner,
    )
    asked: JSONObject = {"role": "assistant", "content": "Shall I?"}
    yes: JSONObject = {"role": "user", "content": "yes"}
    await school.run(theatre, request())
    assert school.recall("storm warnings") == []
    await school.run(theatre, request(HELLO, asked, yes))
    assert school.recall("storm warnings") == ["weather_alerts"]


async def test_a_search_beside_a_call_teaches_by_the_next_call() -> None:
    """The call in the same message was made before the search was answered."""
    school = School()
    both = [search("storm warnings"), call("weather_now", {"city": "x"}, "c2")]
    theatre = stage(
        completion(None, both),
        completion(None, [call("weather_alerts", {"region": "x"}, "c3")], number=2),
        learner=school.learner,
    )
    seen: JSONObject = {"role": "assistant", "content": None, "tool_calls": both[1:]}
    result: JSONObject = {"role": "tool", "tool_call_id": "c2", "content": "sunny"}
    await school.run(theatre, request(), request(HELLO, seen, result))
    assert school.recall("storm warnings") == ["weather_alerts"]


async def test_one_use_is_learned_once(tmp_path: Path) -> None:
    """Calling the tool again on the next turn says nothing new about the search."""
    school = School(tmp_path / "captured")
    used = call("weather_alerts", {"region": "x"})
    theatre = stage(
        completion(None, [search("storm warnings")]),
        completion(None, [used], number=2),
        completion(None, [call("weather_alerts", {"region": "y"}, "c2")], number=3),
        learner=school.learner,
    )
    seen: JSONObject = {"role": "assistant", "content": None, "tool_calls": [used]}
    result: JSONObject = {"role": "tool", "tool_call_id": "c1", "content": "none"}
    await school.run(theatre, request(), request(HELLO, seen, result))
    assert len((tmp_path / "captured").read_bytes().splitlines()) == 1


async def test_capturing_writes_query_and_names_only(tmp_path: Path) -> None:
    """No text of the user, no arguments, no results."""
    school = School(tmp_path / "captured")
    theatre = stage(
        completion("Secret thought.", [search("weather of storms")]),
        completion("More.", [call("weather_alerts", {"region": "secret"})], number=2),
        learner=school.learner,
    )
    await school.run(theatre, request({"role": "user", "content": "secret wish"}))
    (line,) = (tmp_path / "captured").read_bytes().splitlines()
    told = orjson.loads(line)
    assert set(told) == {"query", "tool", "others", "at"}
    assert (told["query"], told["tool"]) == ("weather of storms", "weather_alerts")
    assert "weather_now" in told["others"]


async def test_nothing_is_learned_without_a_learner_or_a_call(tmp_path: Path) -> None:
    """A search that ends in an answer teaches nothing, and learning can be off."""
    school = School()
    await school.run(
        stage(
            completion(None, [search("storm")]),
            completion("Calm.", number=2),
            learner=school.learner,
        ),
        request(),
    )
    assert school.lessons.bytes == 0
    capture = Capture(tmp_path / "captured", pytest.fail)
    deaf = Learner(None, capture, school.background.spawn)
    used = completion(None, [call("weather_alerts", {"region": "x"})], number=2)
    await school.run(stage(completion(None, [search("storm")]), used, learner=deaf), request())
    assert (tmp_path / "captured").exists()


async def test_a_learned_query_finds_its_tool() -> None:
    """Words that no description has lead to the tool that they meant before."""
    school = School()
    school.lessons.learn(TENANT, "gale", "weather_alerts")
    theatre = stage(
        completion(None, [search("gale")]),
        completion("Calm.", number=2),
        learner=school.learner,
    )
    await school.run(theatre, request())
    names = [tool["function"]["name"] for tool in theatre.bodies[1]["tools"]]
    assert names == ["tool_search", "weather_alerts"]


async def test_old_turns_keep_their_predictions() -> None:
    """What was learned in between changes no tool of a conversation's earlier turns."""
    settings = SETTINGS.model_copy(update={"prediction": Settings().prediction})
    school = School()
    theatre = stage(*[completion("Hm.")] * 2, settings=settings, learner=school.learner)
    user: JSONObject = {"role": "user", "content": "is there a gale near the coast of Oslo city"}
    await school.run(theatre, request(user))
    for _ in range(9):
        school.lessons.learn(TENANT, "gale coast Oslo", "mail_delete")
    said: JSONObject = {"role": "assistant", "content": "Hm."}
    await school.run(theatre, request(user, said, {"role": "user", "content": "thanks"}))
    assert len(theatre.bodies[0]["tools"]) > 1
    assert theatre.bodies[1]["tools"] == theatre.bodies[0]["tools"]
