"""Public bug reports about usage, errors, headers, bodies and clients that leave."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import orjson
import pytest
import zstandard

from proxy.app import Gateway, build_gateway
from proxy.errors import StreamTruncated, UpstreamTimeout
from proxy.plan.identity import Caller
from proxy.settings import Settings
from proxy.upstream.aiohttp_transport import AiohttpTransport
from proxy.upstream.transport import Prepared, UpstreamRequest
from proxy.wire import Headers, JSONObject
from tests.bugbank.bank import ON, both, frames_of, play, request_of, settings, stream
from tests.edge.driver import CHAT, Client, Rig, ask
from tests.fakes.scripted import CUT, HANG, ScriptedUpstream, Step, Wait
from tests.fakes.transport import FakeTransport, Outcome
from tests.turns import (
    JSON_TYPE,
    SSE_TYPE,
    chunks_of,
    completion,
    events,
    read,
    request,
    search,
    stage,
)

pytestmark = pytest.mark.anyio

_USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
_TOOLS = request_of("bb001")["tools"]


def _gateway(
    tmp_path: Path, *outcomes: Outcome, **sections: JSONObject
) -> tuple[Gateway, FakeTransport]:
    transport = FakeTransport(*outcomes)
    tree: JSONObject = {
        "upstream": {"base_url": "http://up.test/v1", "retries": 0},
        "ledger": {"enabled": False},
        **sections,
    }
    return build_gateway(Settings.model_validate(tree), tmp_path, {"openai": transport}), transport


@pytest.mark.item("stream/usage-in-finish")
@both
@pytest.mark.parametrize(
    "row",
    [
        pytest.param("bb033", id="bb033"),
        pytest.param("bb035", id="bb035"),
        pytest.param("bb039", id="bb039"),
        pytest.param("bb040", id="bb040"),
    ],
)
async def test_usage_is_found_wherever_it_stands(row: str, deferral: JSONObject) -> None:
    """After the finish, without choices, in a chunk with choices: the ledger has it.

    https://github.com/maximhq/bifrost/issues/191
    https://github.com/ROCm/ATOM/pull/1711
    https://github.com/Noveum/ai-gateway/pull/30
    https://github.com/diegosouzapw/OmniRoute/issues/9750
    """
    theatre = stage(stream(frames_of(row)), settings=settings(deferral))
    body = await read(await theatre.chat(request_of(row, tools=_TOOLS)))
    booked = theatre.ledger.rows[0]
    assert (booked.prompt_tokens, booked.completion_tokens) == (5, 2)
    assert booked.cached_tokens == (4 if row == "bb040" else None)
    if deferral is ON:
        told = [chunk["usage"] for chunk in chunks_of(body) if chunk.get("usage")]
        assert [usage["total_tokens"] for usage in told] == ([] if row == "bb039" else [7])
        assert all(isinstance(chunk["choices"], list) for chunk in chunks_of(body))
        assert theatre.bodies[0]["stream_options"]["include_usage"] is True


@both
async def test_bb043_every_client_that_leaves_is_booked(deferral: JSONObject) -> None:
    """Fifty times.

    https://github.com/envoyproxy/ai-gateway/issues/2115
    """
    replies = [events("a|b|c", pieces=9) for _ in range(50)]
    theatre = stage(*replies, settings=settings(deferral))
    for _ in replies:
        reply = await theatre.chat(request(stream=True))
        assert not isinstance(reply.body, bytes)
        await anext(reply.body)
        await reply.body.aclose()  # type: ignore[attr-defined]  # an iterator that closes
    assert [row.outcome for row in theatre.ledger.rows] == ["client_gone"] * 50


@both
@pytest.mark.parametrize(
    "row", [pytest.param("bb044", id="bb044"), pytest.param("bb045", id="bb045")]
)
async def test_clients_see_the_real_usage(row: str, deferral: JSONObject) -> None:
    """It is the upstream's own, also behind hidden rounds.

    https://github.com/BYK/loreai/issues/1475
    https://github.com/BerriAI/litellm/issues/36880
    """
    theatre = stage(completion("Hi"), settings=settings(deferral))
    reply = orjson.loads(await read(await theatre.chat(request_of(row, tools=_TOOLS))))
    assert reply["usage"]["prompt_tokens"] == theatre.ledger.rows[0].prompt_tokens == 10


@pytest.mark.item("stream/cut-after-visible")
@both
@pytest.mark.parametrize(
    "row", [pytest.param("bb049", id="bb049"), pytest.param("bb051", id="bb051")]
)
async def test_a_stream_that_stops_is_a_retryable_error(row: str, deferral: JSONObject) -> None:
    """Cut or silent: an error frame that clients retry, typed by the server's fault.

    https://github.com/BerriAI/litellm/issues/42085
    https://github.com/BerriAI/litellm/issues/41777
    """
    error = UpstreamTimeout("silent") if row == "bb051" else None
    frames = frames_of(row).replace(b"<timeout>", b"")

    async def stopping() -> AsyncIterator[bytes]:
        yield frames
        if error is not None:
            raise error

    theatre = stage(Prepared(200, SSE_TYPE, stopping()), settings=settings(deferral))
    rig = Rig(chat=theatre.turn.chat)
    body = orjson.dumps(request_of(row, tools=_TOOLS))
    answered = await ask(rig.app, "POST", CHAT, body)
    told = chunks_of(answered.body)[-1]["error"]
    assert told["type"] in ("upstream_error", "timeout_error")
    assert answered.body.endswith(b"data: [DONE]\n\n")


async def test_bb054_retry_headers_keep_their_names(tmp_path: Path) -> None:
    """SDKs look for them.

    https://github.com/BerriAI/litellm/issues/21553
    """
    headers: Headers = [
        *JSON_TYPE,
        (b"retry-after", b"7"),
        (b"retry-after-ms", b"7000"),
        (b"x-should-retry", b"true"),
        (b"x-ratelimit-remaining-requests", b"0"),
        (b"x-request-id", b"req_u"),
    ]
    gateway, _ = _gateway(tmp_path, Prepared(429, headers, b'{"error":{"message":"slow"}}'))
    answered = await ask(gateway.app, "POST", CHAT, orjson.dumps(request_of("bb054")))
    assert answered.status == 429
    assert {name.decode(): value.decode() for name, value in headers}.items() <= (
        answered.headers.items()
    )


async def test_bb056_other_dialects_keep_their_headers(tmp_path: Path) -> None:
    """/v1/messages too.

    https://github.com/BerriAI/litellm/pull/37767
    """
    headers: Headers = [
        (b"anthropic-ratelimit-unified-status", b"rejected"),
        (b"retry-after", b"287441"),
    ]
    gateway, _ = _gateway(tmp_path, Prepared(429, headers, b"{}"))
    answered = await ask(gateway.app, "POST", "/v1/messages", b"{}")
    assert answered.headers["anthropic-ratelimit-unified-status"] == "rejected"
    assert answered.headers["retry-after"] == "287441"


@both
async def test_bb057_a_page_is_not_a_stream(deferral: JSONObject) -> None:
    """It passes as what it is.

    https://github.com/BerriAI/litellm/pull/22085
    """
    page = Prepared(200, [(b"content-type", b"text/html")], b"<html>502</html>")
    theatre = stage(page, settings=settings(deferral))
    reply = await theatre.chat(request_of("bb057", tools=_TOOLS))
    assert await read(reply) == b"<html>502</html>"
    assert dict(reply.headers)[b"content-type"] == b"text/html"


async def test_bb059_long_bodies_are_accepted(tmp_path: Path) -> None:
    """20 MiB pass; more is a 413 that names the limit.

    https://github.com/klarkxy/open-console-gateway/issues/56
    """
    body = b'{"model":"m","messages":[{"role":"user","content":"' + b"x" * 20_971_520 + b'"}]}'
    gateway, transport = _gateway(tmp_path, completion("Hi"))
    assert (await ask(gateway.app, "POST", CHAT, body)).status == 200
    assert transport.sent[0].body == body
    gateway, _ = _gateway(tmp_path, server={"max_body_bytes": 1000})
    answered = await ask(gateway.app, "POST", CHAT, body)
    assert answered.status == 413
    assert "max_body_bytes" in orjson.loads(answered.body)["error"]["message"]


async def test_bb060_a_slow_answer_is_not_asked_for_twice() -> None:
    """It may have been accepted.

    https://github.com/pleaseai/shunt/pull/122
    """
    async with ScriptedUpstream([Wait(5)], [HANG]) as upstream:
        transport = AiohttpTransport()
        slow = UpstreamRequest("POST", f"{upstream.url}/v1/chat/completions", [], b"{}", 1.0, 0.2)
        with pytest.raises(UpstreamTimeout):
            await transport.send(slow)
        await transport.aclose()
        assert len(upstream.requests) == 1


async def test_bb081_compressed_bodies_are_read(tmp_path: Path) -> None:
    """Zstd is decoded, an unknown coding is a 415.

    https://github.com/zyycn/codex-proxy-rs/pull/66
    """
    body = zstandard.ZstdCompressor().compress(b'{"model":"m","messages":[]}')
    gateway, transport = _gateway(tmp_path, completion("Hi"))
    answered = await ask(gateway.app, "POST", CHAT, body, [("content-encoding", "zstd")])
    assert answered.status == 200
    assert transport.sent[0].body == b'{"model":"m","messages":[]}'
    answered = await ask(gateway.app, "POST", CHAT, body, [("content-encoding", "lzma")])
    assert answered.status == 415


async def test_foreign_secrets_do_not_go_up(tmp_path: Path) -> None:
    """Cookies, other providers' keys, hop-by-hop fields and what Connection names stay here.

    bb084 https://github.com/NVIDIA-NeMo/Switchyard/issues/410
    bb085 https://github.com/ranxianglei/billion-context/issues/80
    """
    upstream = {"base_url": "http://up.test/v1", "api_key": "configured", "retries": 0}
    gateway, transport = _gateway(tmp_path, completion("Hi"), upstream=upstream)
    headers = [
        ("authorization", "Bearer callers"),
        ("x-goog-api-key", "secret1"),
        ("cookie", "secret2"),
        ("proxy-authorization", "Basic secret3"),
        ("connection", "close, X-Secret"),
        ("x-secret", "secret4"),
    ]
    await ask(gateway.app, "POST", CHAT, b'{"model":"m","messages":[]}', headers)
    sent = b"".join(name + value for name, value in transport.sent[0].headers)
    assert b"secret" not in sent.replace(b"x-secret", b"")
    assert b"callers" not in sent
    assert (b"authorization", b"Bearer configured") in transport.sent[0].headers


async def test_bb086_a_gateway_key_never_goes_up() -> None:
    """The upstream sees its own key only.

    https://github.com/BerriAI/litellm/issues/32202
    """
    upstream = {"base_url": "http://up.test/v1", "api_key": "up", "retries": 0}
    theatre = stage(completion("Hi"), settings=settings(ON, upstream=upstream))
    headers: Headers = [(b"authorization", b"Bearer gateway")]
    await theatre.chat(request(), headers=headers, caller=Caller(used_gateway_key=True))
    assert dict(theatre.transport.sent[0].headers)[b"authorization"] == b"Bearer up"


async def test_bb088_preflights_reflect_what_is_asked() -> None:
    """SDKs add headers.

    https://github.com/lidge-jun/opencodex/issues/1773
    """
    rig = Rig(overrides={"server": {"cors_origins": ("*",)}})
    headers = [
        ("origin", "https://app.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization,x-stainless-os"),
    ]
    answered = await ask(rig.app, "OPTIONS", CHAT, None, headers)
    assert "x-stainless-os" in answered.headers["access-control-allow-headers"]


async def test_bb091_a_client_that_leaves_stops_the_upstream() -> None:
    """Within a second, streaming or not.

    https://github.com/1rgs/claude-code-proxy/pull/114
    """
    theatre = stage(silent=True, settings=settings(ON))
    rig = Rig(chat=theatre.turn.chat)
    client = Client(orjson.dumps(request_of("bb091", tools=_TOOLS)))
    asyncio.get_running_loop().call_later(0.3, client.leave)
    async with asyncio.timeout(1.3):
        await client.ask(rig.app, "POST", CHAT)
    assert [row.outcome for row in theatre.ledger.rows] == ["client_gone"]


async def test_connections_are_given_back(tmp_path: Path) -> None:
    """Refused streams and finished ones do not use up the pool.

    bb094 https://github.com/mistralai/client-python/issues/532
    bb095 https://github.com/openai/openai-python/issues/763
    """
    refused = (
        b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n"
        b"content-length: 2\r\n\r\n{}"
    )
    frames = frames_of("bb095")
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    answered: list[Step] = [head + frames, CUT]
    scripts: list[Sequence[Step]] = [*([[refused]] * 200), *([answered] * 3)]
    async with ScriptedUpstream(*scripts) as upstream:
        tree = {"upstream": {"base_url": f"{upstream.url}/v1"}, "ledger": {"enabled": False}}
        transport = AiohttpTransport()
        gateway = build_gateway(Settings.model_validate(tree), tmp_path, {"openai": transport})
        body = orjson.dumps(request_of("bb095"))
        for _ in range(200):
            assert (await ask(gateway.app, "POST", CHAT, body)).status == 429
        for _ in range(3):
            assert (await ask(gateway.app, "POST", CHAT, body)).body == frames
        await transport.aclose()
        assert len({received.connection for received in upstream.requests}) <= 8


async def test_bb096_running_streams_keep_their_settings(tmp_path: Path) -> None:
    """Another gateway beside it does not disturb a stream.

    https://github.com/BerriAI/litellm/issues/24929
    """
    gateway, _ = _gateway(tmp_path, events("a|b|c", pieces=9))
    body = orjson.dumps(request_of("bb096"))
    asking = asyncio.get_running_loop().create_task(ask(gateway.app, "POST", CHAT, body))
    build_gateway(Settings(), tmp_path)
    assert (await asking).body.endswith(b"data: [DONE]\n\n")


@pytest.mark.item("stream/cut-in-hidden-round")
async def test_truncation_in_a_hidden_round_is_named() -> None:
    """The kind of bb049, one round later."""
    theatre = stage(
        events(None, [search("t")]), events("Half", number=2, finished=False), settings=settings(ON)
    )
    body = await read(await theatre.chat(request(stream=True)))
    assert b"stream_truncated" in body
    assert StreamTruncated.code == "stream_truncated"
    assert (await play("bb033", ON))[0].endswith(b"data: [DONE]\n\n")
