"""Odd messages to predict from, and predictions that must not move what came before."""

import time

import orjson
import pytest

from proxy.wire import JSON, JSONObject
from tests.edgecases.scene import USER, names, predicting, result, see, user
from tests.tools.samples import city_tools, function
from tests.turns import Stage, call, completion, request, search, stage

pytestmark = pytest.mark.anyio

IMAGE: JSONObject = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
AUDIO: JSONObject = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}


def _text(text: str) -> JSONObject:
    return {"type": "text", "text": text}


async def _predicted(*messages: JSONObject, tools: list[JSONObject] | None = None) -> list[str]:
    """What is shipped beside the search tool; the messages go up as they came."""
    theatre = stage(completion("Hi"), settings=predicting())
    body = request(*messages)
    await see(theatre, {**body, "tools": tools or body["tools"]})
    assert theatre.bodies[0]["messages"] == body["messages"]
    first, *more = names(theatre.bodies[0])
    assert first == "tool_search"
    return more


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", marks=pytest.mark.item("prediction/empty-message")),
        pytest.param(None, marks=pytest.mark.item("prediction/empty-message")),
        pytest.param([], marks=pytest.mark.item("prediction/empty-message")),
        pytest.param([IMAGE], marks=pytest.mark.item("prediction/image-only")),
        pytest.param([AUDIO], marks=pytest.mark.item("prediction/audio-only")),
    ],
)
async def test_messages_without_words(content: JSON) -> None:
    """Nothing is guessed; every tool is a search away."""
    assert await _predicted(user(content)) == []


@pytest.mark.parametrize("wish", ["Delete message 7. {}", "{} Please delete message 7."])
@pytest.mark.item("prediction/long-message")
async def test_a_message_of_200_kilobytes(wish: str) -> None:
    """A pasted log costs no time to speak of; the request before or behind it is understood."""
    log = "2026-11-30 12:00:00 INFO worker 17 took 33 ms over job 99182\n" * 3_300
    began = time.perf_counter()
    shipped = await _predicted(user(wish.format(log)))
    assert time.perf_counter() - began < 2
    if wish.startswith("Delete"):
        assert "mail_delete" in shipped


@pytest.mark.parametrize("said", ["yes", "Yes, do it.", "ok", "はい", "ja, gerne"])
@pytest.mark.item("prediction/yes")
async def test_a_yes(said: str) -> None:
    """It means what was proposed just before."""
    proposal: JSONObject = {"role": "assistant", "content": "Shall I send an e-mail to Ann?"}
    assert "mail_send" in await _predicted(user("Ann must know."), proposal, user(said))


@pytest.mark.item("prediction/text-parts")
async def test_text_in_parts() -> None:
    """All of them count, whatever stands between."""
    parts = [_text("Please send"), IMAGE, _text("an e-mail to Ann")]
    assert "mail_send" in await _predicted(user(parts))


@pytest.mark.parametrize("messages", [[], [{"role": "system", "content": "Send e-mail now."}]])
@pytest.mark.item("prediction/system-only")
async def test_no_user_message(messages: list[JSONObject]) -> None:
    """Nobody asked for anything, so nothing is guessed."""
    theatre = stage(completion("Hi"), settings=predicting())
    await see(theatre, {**request(), "messages": messages})
    assert names(theatre.bodies[0]) == ["tool_search"]


@pytest.mark.item("prediction/developer-role")
async def test_the_developers_word() -> None:
    """It instructs like the system's: a tool that it names is kept, its text is no wish."""
    rules: JSONObject = {"role": "developer", "content": "Use mail_search. Never ask for weather."}
    theatre = stage(completion("Hi"), settings=predicting())
    await see(theatre, request(rules, user("thanks")))
    assert names(theatre.bodies[0]) == ["mail_search", "tool_search"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("my zapcmdlets", False, marks=pytest.mark.item("prediction/mention-in-word")),
        pytest.param("superzapcmd", False, marks=pytest.mark.item("prediction/mention-in-word")),
        pytest.param("Use ZAPCMD", True, marks=pytest.mark.item("prediction/mention-case")),
        pytest.param("zapcmdで", True, marks=pytest.mark.item("prediction/mention-cjk")),
        pytest.param("用zapcmd吧", True, marks=pytest.mark.item("prediction/mention-cjk")),
    ],
)
async def test_mentions(text: str, named: bool) -> None:
    """A whole name in any case is a mention, a part of a longer one is not."""
    tools = [*city_tools()[:3], function("zapcmd", "Removes it.")]
    shipped = await _predicted(user(text), tools=tools)
    assert ("zapcmd" in shipped) is named


@pytest.mark.item("prediction/shared-word")
async def test_a_word_of_eight_servers() -> None:
    """No flood: at most the widest shortlist, and the rest is listed."""
    tools = [function(f"server{n}__search", "Searches.", q={"type": "string"}) for n in range(12)]
    shipped = await _predicted(user("search"), tools=tools)
    assert len(shipped) <= 8


@pytest.mark.parametrize("said", ["thanks", "Thank you!", "Danke schön", "ありがとう", "👍"])
@pytest.mark.item("prediction/thanks")
async def test_thanks(said: str) -> None:
    """They ask for nothing, whatever was just talked about."""
    answer: JSONObject = {"role": "assistant", "content": "A storm comes."}
    first = await _predicted(user("storm warnings"))
    assert await _predicted(user("storm warnings"), answer, user(said)) == first


@pytest.mark.item("prediction/other-language")
async def test_a_question_in_another_language() -> None:
    """What is guessed fits the question, and what is not guessed is a search away."""
    shipped = await _predicted(user("明日の天気を教えてください"))
    assert all(name.startswith("weather_") for name in shipped)


async def _answered(theatre: Stage, *messages: JSONObject) -> list[JSONObject]:
    seen = await see(theatre, request(*messages))
    return [*messages, seen.message]


@pytest.mark.item("prediction/two-turns")
async def test_two_turns() -> None:
    """What the first message shipped comes first in the second request, then what is new."""
    theatre = stage(completion("Calm."), completion("Sent."), settings=predicting())
    history = await _answered(theatre, user("storm warnings in force?"))
    await _answered(theatre, *history, user("send an e-mail to Ann"))
    first, second = (names(body) for body in theatre.bodies)
    assert second[: len(first)] == first
    assert "mail_send" in second[len(first) :]


@pytest.mark.item("prediction/tool-results")
async def test_results_do_not_move_what_was_shipped() -> None:
    """A step of the tool loop keeps all that its user message brought, in place."""
    made = call("weather_alerts", {"region": "x"})
    theatre = stage(completion(None, [made]), completion("Calm."), settings=predicting())
    history = await _answered(theatre, user("storm warnings in force?"))
    await _answered(theatre, *history, result())
    first, second = (names(body) for body in theatre.bodies)
    assert second[: len(first)] == first


@pytest.mark.parametrize("delivery", ["append", "frozen"])
@pytest.mark.item("prediction/edited-message", "state/forks")
async def test_an_edited_message(delivery: str) -> None:
    """It begins another conversation: nothing of the old one is shipped or put back."""
    theatre = stage(
        completion(None, [search("delete")]),
        completion("Gone.", number=2),
        completion("Hi", number=3),
        settings=predicting(delivery=delivery),
    )
    await _answered(theatre, user("remove it"))
    gone: JSONObject = {"role": "assistant", "content": "Gone."}
    await _answered(theatre, user("storm warnings"), gone, user("thanks"))
    last = orjson.dumps(theatre.bodies[2])
    assert b"mail_delete" not in last
    assert b'"role":"tool"' not in last or delivery == "frozen"


@pytest.mark.parametrize("delivery", ["append", "frozen"])
@pytest.mark.item("prediction/regenerate")
async def test_the_same_request_again(delivery: str) -> None:
    """It goes up with the same bytes, whatever happened in between."""
    other = completion(None, [call("mail_send", {"to": "Ann"})])
    theatre = stage(
        completion("Calm."), other, completion("Calm."), settings=predicting(delivery=delivery)
    )
    wish = user("storm warnings in force?")
    await see(theatre, request(wish))
    await see(theatre, request(user("send an e-mail")))
    await see(theatre, request(wish))
    assert theatre.transport.sent[0].body == theatre.transport.sent[2].body


@pytest.mark.item("prediction/regenerate", "state/forks")
async def test_either_of_two_answers_may_go_on() -> None:
    """Each answer to the same request brings back its own hidden round, and no other."""
    for kept, found in (("One.", "weather_alerts"), ("Two.", "mail_delete")):
        theatre = stage(
            completion(None, [search("storm")]),
            completion("One.", number=2),
            completion(None, [search("delete message")]),
            completion("Two.", number=4),
            completion("Bye.", number=5),
            settings=predicting(),
        )
        await see(theatre, request(USER))
        await see(theatre, request(USER))
        said: JSONObject = {"role": "assistant", "content": kept}
        await see(theatre, request(USER, said, user("thanks")))
        messages = theatre.bodies[4]["messages"]
        assert found in messages[2]["content"]
        assert messages[3]["content"] == kept
