"""What users of other systems of this kind complained about, where no other test has it."""

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest

from proxy.upstream.transport import Prepared
from proxy.wire import JSONObject
from tests.edgecases.scene import USER, names, play, result, see, settings, user
from tests.tools.samples import city_tools, function
from tests.turns import SSE_TYPE, call, completion, events, request, search, stage

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
deliveries = pytest.mark.parametrize("delivery", ["append", "frozen"])


@both
@deliveries
@pytest.mark.item("reported/empty-turn")
async def test_an_empty_answer_after_a_search(delivery: str, stream: bool) -> None:
    """It is asked for once more, with what was found and without another search."""
    make = events if stream else completion
    rounds = [make(None, [search("storm")]), make(None, number=2), make("Calm.", number=3)]
    theatre = stage(*rounds, settings=settings(delivery=delivery))
    assert (await see(theatre, request(stream=stream))).text == "Calm."
    assert "tool_search" not in names(theatre.bodies[2])
    assert b"weather_alerts" in orjson.dumps(theatre.bodies[2])


@deliveries
@pytest.mark.item("reported/lost-on-resume")
async def test_a_session_that_resumes_elsewhere(delivery: str) -> None:
    """A gateway that knows nothing of it still shows the schemas of what was called."""
    made = call("mail_send", {"to": "Ann"})
    said: JSONObject = {"role": "assistant", "content": None, "tool_calls": [made]}
    theatre = stage(completion("Hi"), settings=settings(delivery=delivery))
    await see(theatre, request(USER, said, result(), user("one more")))
    body = theatre.bodies[0]
    if delivery == "append":
        assert city_tools()[3] in body["tools"]
    else:
        told = orjson.loads(body["messages"][2]["content"])["loaded"]
        assert told[0]["parameters"] == city_tools()[3]["function"]["parameters"]


@pytest.mark.item("reported/required-left-out")
async def test_a_schema_in_a_result_is_whole() -> None:
    """Required parameters and all."""
    rounds = completion(None, [search("select:mail_send")]), completion("Hi", number=2)
    theatre = stage(*rounds, settings=settings(delivery="frozen"))
    await see(theatre, request())
    told = orjson.loads(theatre.bodies[1]["messages"][-1]["content"])["loaded"]
    assert [tool["parameters"] for tool in told] == [city_tools()[3]["function"]["parameters"]]


@both
@pytest.mark.item("reported/first-server-wins")
async def test_a_bare_name_of_two_servers(stream: bool) -> None:
    """Neither is preferred: the model hears of both and says which."""
    tools = [function(f"{server}__search", "Searches.") for server in ("docs", "mail")]
    make = events if stream else completion
    right = call("mail__search", None, "c2")
    theatre = stage(
        make(None, [call("search")]), make(None, [right], number=2), settings=settings()
    )
    seen = await see(theatre, {**request(stream=stream), "tools": tools})
    assert seen.calls == [right]
    hint = orjson.loads(theatre.bodies[1]["messages"][-1]["content"])
    assert hint["similar"] == ["docs__search", "mail__search"]


@pytest.mark.item("reported/text-waits")
async def test_text_streams_while_arguments_are_held() -> None:
    """The client reads the text before the call that must be checked has ended."""
    read = asyncio.Event()
    piece: JSONObject = {"index": 0, **call("mail_delete", {"id": 7})}
    start = [chunk async for chunk in play({"content": "I will."}, reason=None).chunks()]
    rest = [chunk async for chunk in play({"tool_calls": [piece]}).chunks()]

    async def speak() -> AsyncIterator[bytes]:
        yield b"".join(start).removesuffix(b"data: [DONE]\n\n")
        await asyncio.wait_for(read.wait(), 5)
        yield b"".join(rest)

    theatre = stage(Prepared(200, SSE_TYPE, speak()), settings=settings())
    body = (await theatre.chat(request(stream=True))).body
    assert not isinstance(body, bytes)
    assert b"I will." in await anext(body)
    read.set()
    assert b"mail_delete" in b"".join([chunk async for chunk in body])
