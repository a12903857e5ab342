"""Public bug reports about tool calls in streams and the shape of chunks."""

import orjson
import pytest

from proxy.errors import UpstreamError
from proxy.upstream.transport import Prepared
from proxy.wire import JSONObject
from tests.bugbank.bank import (
    OFF,
    ON,
    both,
    calls_of,
    finishes_of,
    frames_of,
    play,
    request_of,
    settings,
    stream,
    text_of,
    tool_names,
)
from tests.turns import JSON_TYPE, chunks_of, completion, events, read, search, stage

pytestmark = pytest.mark.anyio


@both
async def test_bb001_parallel_calls_keep_their_indices(deferral: JSONObject) -> None:
    """Two calls are two indices.

    https://github.com/BerriAI/litellm/issues/21331
    """
    body, _ = await play("bb001", deferral)
    calls = calls_of(body)
    assert [calls[index]["id"] for index in (0, 1)] == ["call_a", "call_b"]
    assert [orjson.loads(calls[i]["arguments"])["q"] for i in (0, 1)] == ["a", "b"]


@pytest.mark.item("calls/shared-index", "calls/whole-call-delta")
@both
async def test_bb004_whole_calls_that_share_an_index_are_two(deferral: JSONObject) -> None:
    """A new id is a new call.

    https://github.com/huggingface/smolagents/pull/1958
    """
    body, _ = await play("bb004", deferral)
    if deferral is OFF:
        assert body == frames_of("bb004")
        return
    calls = calls_of(body)
    assert [orjson.loads(calls[i]["arguments"])["q"] for i in (0, 1)] == ["E", "V"]


@both
async def test_bb007_object_arguments_and_a_wrong_finish(deferral: JSONObject) -> None:
    """Calls count, not the finish reason.

    https://github.com/BerriAI/litellm/pull/37792
    """
    body, _ = await play("bb007", deferral)
    if deferral is ON:
        assert orjson.loads(calls_of(body)[0]["arguments"]) == {"q": "x"}
        assert finishes_of(body) == ["tool_calls"]


@both
async def test_bb008_calls_of_ours_carry_every_field(deferral: JSONObject) -> None:
    """A first fragment without type passes.

    https://github.com/vllm-project/vllm/issues/16340
    """
    body, _ = await play("bb008", deferral)
    assert calls_of(body)[0]["name"] == "t0"
    theatre = stage(stream(frames_of("bb008")), settings=settings(ON))
    unforced = {**request_of("bb008"), "tool_choice": "auto"}
    call = calls_of(await read(await theatre.chat(unforced)))[0]
    assert (call["id"], call["type"], call["name"]) == ("a", "function", "t0")


@pytest.mark.item("calls/missing-ids")
async def test_bb009_a_search_without_id_gets_one() -> None:
    """The hidden round has a unique id.

    https://github.com/vllm-project/vllm/issues/18412
    """
    body, theatre = await play("bb009", ON, events("Done.", number=2))
    assistant, result = theatre.bodies[1]["messages"][-2:]
    assert assistant["tool_calls"][0]["id"] == result["tool_call_id"] != ""
    assert result["tool_call_id"].encode() not in body
    assert text_of(body) == "Done."


@both
async def test_bb010_a_call_without_index_is_understood(deferral: JSONObject) -> None:
    """Gemini leaves the index out.

    https://github.com/AstrBotDevs/AstrBot/issues/6661
    """
    body, _ = await play("bb010", deferral)
    if deferral is OFF:
        assert body == frames_of("bb010")
    else:
        assert orjson.loads(calls_of(body)[0]["arguments"]) == {"q": "x"}


@both
async def test_bb012_provider_fields_of_calls_survive(deferral: JSONObject) -> None:
    """Thought signatures reach the client.

    https://github.com/open-webui/computer/issues/224
    """
    body, _ = await play("bb012", deferral)
    assert b"SIG" in body
    signed = search("x") | {"extra_content": {"google": {"thought_signature": "SIG"}}}
    theatre = stage(events(None, [signed]), events("ok", number=2), settings=settings(ON))
    await read(await theatre.chat(request_of("bb012")))
    replayed = theatre.bodies[1]["messages"][-2]["tool_calls"][0]
    assert replayed["extra_content"]["google"]["thought_signature"] == "SIG"


@pytest.mark.item("search/empty-arguments")
async def test_bb013_a_search_without_arguments_is_answered() -> None:
    """It gets a listing, not a crash.

    https://github.com/BerriAI/litellm/issues/5063
    """
    body, theatre = await play("bb013", ON, events("Done.", number=2))
    assert text_of(body) == "Done."
    assert orjson.loads(theatre.bodies[1]["messages"][-1]["content"])["note"]


async def test_bb014_a_loop_of_empty_searches_ends() -> None:
    """The rounds are bounded.

    https://github.com/Lexus2016/hermes-agent-evolution/pull/1170
    """
    empty = search("x")
    empty["function"]["arguments"] = ""
    rounds = [events(None, [empty], number=n) for n in range(1, 20)]
    theatre = stage(*rounds, settings=settings({**ON, "max_rounds": 3}))
    with pytest.raises(UpstreamError, match="searched"):  # nothing was said: no made-up end
        await read(await theatre.chat(request_of("bb014")))
    assert len(theatre.bodies) <= 4


@both
async def test_bb021_an_empty_finish_reason_is_none(deferral: JSONObject) -> None:
    """An empty reason counts as null.

    https://github.com/CangShui/workbuddy-gateway/pull/3
    """
    body, theatre = await play("bb021", deferral)
    assert finishes_of(body) == ["tool_calls"]
    assert theatre.ledger.turns[0].outcome == "ok"


@both
async def test_bb022_text_after_an_empty_finish_reason_counts(deferral: JSONObject) -> None:
    """The reply is not over at "".

    https://github.com/ollama/ollama/issues/4357
    """
    body, _ = await play("bb022", deferral)
    assert text_of(body) == "ab"
    assert finishes_of(body) == ["stop"]


async def test_bb024_a_spliced_answer_has_one_id() -> None:
    """Clients merge by id.

    https://github.com/BerriAI/litellm/issues/38098
    """
    theatre = stage(events(None, [search("t1")]), events("Hi", number=2), settings=settings(ON))
    body = await read(await theatre.chat(request_of("bb024")))
    assert len({chunk["id"] for chunk in chunks_of(body)}) == 1


async def test_bb025_replies_of_ours_name_their_model() -> None:
    """What Usher answers itself validates.

    https://github.com/BerriAI/litellm/issues/35894
    """
    theatre = stage(completion(None, [search("t")]), completion("Hi", number=2))
    reply = orjson.loads(await read(await theatre.chat(request_of("bb013", stream=False))))
    assert {"id", "object", "created", "model", "choices", "usage"} <= reply.keys()
    assert reply["model"] == "m-2026"
    assert reply["choices"][0]["index"] == 0


async def test_bb026_null_content_stays() -> None:
    """A reply is its own bytes.

    https://github.com/BerriAI/litellm/issues/17532
    """
    raw = orjson.dumps(request_of("bb026"))
    reply = (
        b'{"choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null}}]}'
    )
    theatre = stage(Prepared(200, JSON_TYPE, reply), settings=settings(ON))
    assert await read(await theatre.chat(raw)) == reply


@both
async def test_bb029_nulls_are_not_normalised(deferral: JSONObject) -> None:
    """They stay where they were.

    https://github.com/BerriAI/litellm/pull/13320
    """
    reply = b'{"service_tier":null,"system_fingerprint":null,"choices":[{"message":{}}]}'
    theatre = stage(Prepared(200, JSON_TYPE, reply), settings=settings(deferral))
    assert await read(await theatre.chat(request_of("bb029"))) == reply


async def test_bb032_several_choices_pass_untouched() -> None:
    """n>1 is never half-done.

    https://github.com/epam/ai-dial-adapter-openai/issues/140
    """
    request = request_of("bb032", tools=request_of("bb013")["tools"])
    theatre = stage(stream(frames_of("bb032")), settings=settings(ON))
    assert await read(await theatre.chat(request)) == frames_of("bb032")
    assert theatre.bodies[0] == request


async def test_bb125_a_stream_never_shows_the_search() -> None:
    """Nothing of it leaks.

    https://github.com/headroomlabs-ai/headroom/issues/1450
    """
    body, _ = await play("bb125", ON, events("Done.", number=2))
    assert b"tool_search" not in body
    assert finishes_of(body) == ["stop"]
    assert text_of(body) == "Done."


async def test_bb126_text_streams_before_and_after_a_search() -> None:
    """No round is swallowed.

    https://github.com/headroomlabs-ai/headroom/issues/3266
    """
    theatre = stage(
        events("First.", [search("t1")]), events("Second.", number=2), settings=settings(ON)
    )
    body = await read(await theatre.chat(request_of("bb126")))
    assert text_of(body) == "First.\n\nSecond."
    deltas = [choice["delta"] for chunk in chunks_of(body) for choice in chunk["choices"]]
    assert sum("role" in delta for delta in deltas) == 1
    assert body.endswith(b"data: [DONE]\n\n")


@pytest.mark.item("accounting/three-rounds")
async def test_bb130_five_searches_are_bounded_and_summed() -> None:
    """The last call cannot search.

    https://github.com/agentgateway/agentgateway/pull/3353
    """
    rounds = [events(None, [search(f"t{n}", f"s{n}")], number=n) for n in range(1, 4)]
    answer = events("Nothing there.", number=4)
    theatre = stage(*rounds, answer, settings=settings({**ON, "max_rounds": 2}))
    body = await read(await theatre.chat(request_of("bb130")))
    assert len(theatre.bodies) == 4
    assert "tool_search" not in tool_names(theatre.bodies[2])
    assert chunks_of(body)[-1]["usage"]["prompt_tokens"] == 40


@pytest.mark.item("stream/reasoning-content")
@both
async def test_bb141_unknown_delta_fields_reach_the_client(deferral: JSONObject) -> None:
    """Reasoning is not dropped.

    https://github.com/maximhq/bifrost/issues/974
    """
    theatre = stage(stream(frames_of("bb141")), settings=settings(deferral))
    request = request_of("bb141", tools=request_of("bb001")["tools"])
    body = await read(await theatre.chat(request))
    deltas = [choice["delta"] for chunk in chunks_of(body) for choice in chunk["choices"]]
    assert any(delta.get("reasoning") == "think" for delta in deltas)
    assert any(delta.get("reasoning_details") == [] for delta in deltas)
