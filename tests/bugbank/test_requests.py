"""Public bug reports about tool choices, schemas, deferral, histories and parameters."""

from itertools import pairwise
from pathlib import Path

import orjson
import pytest

from proxy.draft import Draft
from proxy.upstream.transport import Prepared
from proxy.wire import JSONObject
from tests.bugbank.bank import ON, ROWS, both, request_of, settings, tool_names
from tests.turns import JSON_TYPE, Stage, call, chat_request, completion, read, search, stage

pytestmark = pytest.mark.anyio


async def _send(request: JSONObject, *more: Prepared, **deferral: object) -> Stage:
    """What goes upstream for a request whose tools are deferred."""
    theatre = stage(*(more or (completion("Hi"),)), settings=settings({**ON, **deferral}))
    await read(await theatre.chat({**request, "stream": False}))
    return theatre


async def test_bb097_tools_are_never_empty() -> None:
    """A choice needs tools beside it.

    https://github.com/BerriAI/litellm/issues/26212
    """
    body = (await _send(request_of("bb097"))).bodies[0]
    assert "tool_search" in tool_names(body)
    assert body["tool_choice"] == "auto"


async def test_bb099_a_named_tool_is_sent_whole() -> None:
    """It is never deferred.

    https://github.com/janhq/jan/pull/8648
    """
    request = request_of("bb099")
    body = (await _send(request)).bodies[0]
    assert body["tools"] == [request["tools"][57]]
    assert body["tool_choice"] == request["tool_choice"]


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "function": {"name": "t1"}},
        "required",
        {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "auto",
                "tools": [{"type": "function", "function": {"name": "t1"}}],
            },
        },
    ],
)
async def test_bb102_a_choice_is_not_dropped(choice: object) -> None:
    """All forms arrive.

    https://github.com/BerriAI/litellm/pull/39737
    """
    body = (await _send(request_of("bb102", tool_choice=choice))).bodies[0]
    assert body["tool_choice"] == choice


@pytest.mark.item("catalog/recursive-reference")
@pytest.mark.parametrize(
    ("row", "name"),
    [
        pytest.param("bb104", "tree", id="bb104"),
        pytest.param("bb105", "d", id="bb105"),
        pytest.param("bb106", "u", id="bb106"),
    ],
)
async def test_schemas_with_references_stay_whole(row: str, name: str) -> None:
    """Cycles end, definitions stay beside their references, nothing is inlined.

    https://github.com/Emanuele-web04/synara/pull/931
    https://github.com/BerriAI/litellm/pull/28646
    https://github.com/google-gemini/gemini-cli/issues/13326
    """
    request = request_of(row)
    wanted = search(f"select:{name}")
    theatre = await _send(request, completion(None, [wanted]), completion("Hi", number=2))
    surfaced = [tool for tool in theatre.bodies[1]["tools"] if tool["function"]["name"] == name]
    assert surfaced == [tool for tool in request["tools"] if tool["function"]["name"] == name]


async def test_bb110_native_deferral_passes_whole() -> None:
    """Never half of it.

    https://github.com/Wei-Shaw/sub2api/issues/5942
    """
    raw = orjson.dumps(request_of("bb110"))
    theatre = stage(completion("Hi"), settings=settings(ON))
    await theatre.chat(raw)
    assert theatre.transport.sent[0].body == raw


@pytest.mark.item("cache/none-on-surfaced")
async def test_bb112_a_tool_with_a_breakpoint_is_not_moved() -> None:
    """And none is added.

    https://github.com/router-for-me/CLIProxyAPI/issues/4561
    """
    request = request_of("bb112")
    marked = [tool for tool in request["tools"] if "cache_control" in orjson.dumps(tool).decode()]
    body = (await _send(request)).bodies[0]
    kept = [tool for tool in body["tools"] if "cache_control" in orjson.dumps(tool).decode()]
    assert kept == marked
    assert marked


async def test_bb113_without_a_search_nothing_is_deferred() -> None:
    """No dead end.

    https://github.com/Gitlawb/zero/pull/148
    """
    raw = orjson.dumps(request_of("bb113"))
    theatre = stage(completion("Hi"), settings=settings({"mode": "off"}))
    await theatre.chat(raw)
    assert theatre.transport.sent[0].body == raw


async def test_bb115_tools_of_the_history_are_declared() -> None:
    """A resumed session goes on.

    https://github.com/QwenLM/qwen-code/issues/8433
    """
    body = (await _send(request_of("bb115"))).bodies[0]
    assert "t44" in tool_names(body)


async def test_bb119_every_deferred_tool_is_listed() -> None:
    """The model can see what there is.

    https://github.com/microsoft/vscode/issues/315526
    """
    request = request_of("bb119")
    theatre = stage(settings=settings(ON))
    draft = await theatre.drafter.draft(theatre.drafter.open(chat_request(orjson.dumps(request))))
    assert isinstance(draft, Draft)
    description = orjson.loads(draft.toolbox.search_raw)["function"]["description"]
    names = [tool["function"]["name"] for tool in request["tools"]]
    assert all(name in description or name.removeprefix("t") in description for name in names)


async def test_bb120_hidden_rounds_use_the_same_upstream() -> None:
    """Same URL, model, credentials.

    https://github.com/experientiallabs/experiential/pull/1042
    """
    rounds = completion(None, [search("t1")]), completion("Hi", number=2)
    theatre = stage(*rounds, settings=settings(ON))
    headers = [(b"authorization", b"Bearer own")]
    await theatre.chat({**request_of("bb120"), "stream": False}, headers=headers)
    first, second = theatre.transport.sent
    assert first.url == second.url
    assert dict(first.headers)[b"authorization"] == dict(second.headers)[b"authorization"]
    assert theatre.bodies[0]["model"] == theatre.bodies[1]["model"]


@pytest.mark.item("cache/ten-turns")
async def test_bb121_found_tools_are_appended() -> None:
    """The prefix of tools is stable.

    https://github.com/QwenLM/qwen-code/pull/8276
    """
    request = request_of("bb120", stream=False)
    rounds = [
        completion(None, [search("select:t7")]),
        completion(None, [call("t7", {"q": "a"}, "c1")], number=2),
        completion(None, [search("select:t3", "s2")], number=3),
        completion("Done.", number=4),
    ]
    theatre = stage(*rounds, settings=settings(ON))
    await theatre.chat(request)
    said = {"role": "assistant", "content": None, "tool_calls": [call("t7", {"q": "a"}, "c1")]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "x"}
    await theatre.chat({**request, "messages": [*request["messages"], said, result]})
    arrays = [body["tools"] for body in theatre.bodies]
    assert all(b[: len(a)] == a for a, b in pairwise(arrays))
    assert tool_names(theatre.bodies[-1]) == ["tool_search", "t7", "t3"]


async def test_bb129_a_search_cannot_widen_what_is_allowed() -> None:
    """allowed_tools bounds it.

    https://github.com/SamSaffron/term-llm/pull/256
    """
    request = request_of("bb129")
    theatre = await _send(request, eager_chars=0)
    assert "t1" in orjson.dumps(theatre.bodies[0]["tools"]).decode()
    rounds = completion(None, [search("t2 t3 t4")]), completion("Hi", number=2)
    theatre = await _send(request, *rounds, eager_chars=0)
    assert not {"t2", "t3", "t4"} & set(tool_names(theatre.bodies[-1]))


@both
async def test_bb135_call_ids_pass_unchanged(deferral: JSONObject) -> None:
    """Whatever their alphabet.

    https://github.com/cloudflare/ai/pull/384
    """
    request = request_of("bb135", stream=False)
    theatre = stage(completion("Hi"), settings=settings(deferral))
    await theatre.chat(request)
    assert theatre.bodies[0]["messages"] == request["messages"]


@both
async def test_bb138_unknown_message_fields_pass(deferral: JSONObject) -> None:
    """Reasoning is replayed.

    https://github.com/CommandCodeAI/command-code/issues/840
    """
    request = request_of("bb138", stream=False)
    theatre = stage(completion("Hi"), settings=settings(deferral))
    await theatre.chat(request)
    assert theatre.bodies[0]["messages"] == request["messages"]
    thought = completion(None, [search("t")])
    reply = orjson.loads(await thought.read())
    reply["choices"][0]["message"]["reasoning_details"] = [{"signature": "S"}]
    rounds = Prepared(200, JSON_TYPE, orjson.dumps(reply)), completion("Hi", number=2)
    theatre = await _send(request_of("bb120"), *rounds)
    assert theatre.bodies[1]["messages"][-2]["reasoning_details"] == [{"signature": "S"}]


@both
async def test_bb142_unknown_reply_fields_pass(deferral: JSONObject) -> None:
    """Bytes equal.

    https://github.com/BerriAI/litellm/issues/29216
    """
    reply = b'{"choices":[{"message":{"role":"assistant","content":"x","reasoning_content":"R"}}]}'
    theatre = stage(Prepared(200, JSON_TYPE, reply), settings=settings(deferral))
    assert await read(await theatre.chat(request_of("bb142"))) == reply


@both
async def test_bb145_parameters_are_not_renamed(deferral: JSONObject) -> None:
    """A limit goes up under its own name.

    https://github.com/mozilla-ai/otari/pull/769
    """
    request = request_of("bb145", stream=False, tools=request_of("bb001")["tools"])
    theatre = stage(completion("Hi"), settings=settings(deferral))
    await theatre.chat(request)
    assert theatre.bodies[0]["max_completion_tokens"] == 5
    assert "max_tokens" not in theatre.bodies[0]


async def test_bb146_nothing_is_added_for_strict_servers() -> None:
    """`ask_usage: false` adds no field.

    https://github.com/BasedHardware/omi/pull/11975
    """
    upstream = {"base_url": "http://127.0.0.1:1/v1", "ask_usage": False}
    theatre = stage(completion("Hi"), settings=settings(ON, upstream=upstream))
    request = request_of("bb146", tools=request_of("bb001")["tools"])
    await read(await theatre.chat(request))
    assert theatre.bodies[0].keys() == request.keys()


@pytest.mark.parametrize(
    "row",
    [pytest.param("bb132", id="bb132"), pytest.param("bb134", id="bb134")],
)
async def test_nothing_is_put_before_a_cached_prefix(row: str) -> None:
    """Hidden messages come where they happened, never in front.

    https://github.com/EasyMetaAu/helm-api/pull/231
    https://github.com/vectorize-io/hindsight/pull/710
    """
    assert ROWS[row]["area"] == "memory"
    cached = {"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}
    request = request_of("bb120", stream=False)
    request["messages"] = [{"role": "system", "content": [cached]}, *request["messages"]]
    rounds = completion(None, [search("t1")]), completion("Hi", number=2)
    theatre = await _send(request, *rounds)
    for body in theatre.bodies:
        assert body["messages"][: len(request["messages"])] == request["messages"]


def test_every_row_of_the_bank_has_a_test() -> None:
    """Seventy-three reports, each named and linked by the tests of this folder."""
    sources = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [row for row in ROWS if row not in sources] == []
    links = [row["source"].partition("#")[0] for row in ROWS.values()]
    assert [link for link in links if link not in sources] == []
