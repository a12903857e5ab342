"""A turn finds its way, and its books are kept whatever happens."""

import asyncio

import orjson
import pytest

from proxy.errors import BadRequest, ConnectFailed, UpstreamTimeout
from proxy.plan.exchange import Reply
from proxy.plan.identity import Caller
from proxy.settings import Settings
from proxy.wire import Headers, JSONObject
from tests.turns import (
    SETTINGS,
    chat_request,
    completion,
    events,
    read,
    request,
    search,
    stage,
)

pytestmark = pytest.mark.anyio


def _header(reply: Reply, name: bytes) -> bytes | None:
    return dict(reply.headers).get(name)


@pytest.mark.item("state/same-ids")
async def test_another_tenant_finds_nothing_parked() -> None:
    """The same conversation under another tenant's key is a new one."""
    theatre = stage(
        completion("Look.", [search("storm warnings")]), completion("Calm.", number=2),
        completion("Bye.", number=3),
    )  # fmt: skip
    user: JSONObject = {"role": "user", "content": "hello"}
    await theatre.chat(request(user))
    history = request(user, {"role": "assistant", "content": "Look.\n\nCalm."}, user)
    await theatre.chat(history, caller=Caller(tenant="other"))
    assert len(theatre.bodies[2]["messages"]) == 3
    assert len(theatre.bodies[2]["tools"]) == 1


@pytest.mark.parametrize("tools", [True, False])
async def test_an_unreachable_upstream_is_in_the_books(tools: bool) -> None:
    """The error reaches the edge, and the ledger has the attempt."""
    theatre = stage(ConnectFailed("no route"))
    with pytest.raises(ConnectFailed):
        await theatre.chat(request() if tools else {"model": "m", "messages": []})
    assert [row.outcome for row in theatre.ledger.rows] == ["upstream_unreachable"]
    assert [turn.outcome for turn in theatre.ledger.turns] == ["upstream_unreachable"]


@pytest.mark.item("stream/disconnect", "accounting/aborted")
@pytest.mark.parametrize("tools", [True, False])
async def test_a_client_that_leaves_mid_stream_is_in_the_books(tools: bool) -> None:
    """The row is written and the upstream let go when the body is closed half-way."""
    theatre = stage(events("a|b|c|d", pieces=20))
    body = request(stream=True) if tools else {"model": "m", "messages": [], "stream": True}
    reply = await theatre.chat(body)
    assert not isinstance(reply.body, bytes)
    await anext(reply.body)
    await reply.body.aclose()  # type: ignore[attr-defined]  # an iterator that closes
    assert [row.outcome for row in theatre.ledger.rows] == ["client_gone"]
    assert [turn.outcome for turn in theatre.ledger.turns] == ["client_gone"]


@pytest.mark.parametrize("tools", [True, False])
async def test_a_client_that_leaves_before_the_body_is_in_the_books(tools: bool) -> None:
    """A stream that nobody began to read still ends in a row."""
    theatre = stage(events("a"))
    body = request(stream=True) if tools else {"model": "m", "messages": [], "stream": True}
    reply = await theatre.chat(body)
    assert not isinstance(reply.body, bytes)
    await reply.body.aclose()  # type: ignore[attr-defined]  # an iterator that closes
    assert [row.outcome for row in theatre.ledger.rows] == ["client_gone"]


@pytest.mark.item("stream/disconnect", "accounting/aborted")
async def test_a_client_that_leaves_while_waiting_is_in_the_books() -> None:
    """Cancelling the turn before the upstream answered leaves a row as well."""
    theatre = stage(silent=True)
    task = asyncio.get_running_loop().create_task(theatre.chat(request()))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [row.outcome for row in theatre.ledger.rows] == ["client_gone"]


async def test_observing_changes_nothing() -> None:
    """The plan is made and shown, the request goes up as it came."""
    settings = Settings.model_validate(
        {**SETTINGS.model_dump(), "deferral": {"mode": "observe", "min_tools": 1, "small_chars": 0}}
    )
    theatre = stage(completion("Hi"), settings=settings)
    body = orjson.dumps(request())
    reply = await theatre.chat(body)
    assert theatre.transport.sent[0].body == body
    assert _header(reply, b"x-usher-tools") == (
        b"kept=0;deferred=6;predicted=0;discovered=0;mode=observe"
    )
    await read(reply)
    assert theatre.ledger.rows[0].tools_deferred == theatre.ledger.rows[0].tokens_avoided == 0


async def test_a_client_can_switch_deferral_off() -> None:
    """One header makes a request pass untouched."""
    theatre = stage(completion("Hi"))
    body = orjson.dumps(request())
    headers: Headers = [(b"x-usher-defer", b"off")]
    await theatre.chat(body, headers=headers)
    assert theatre.transport.sent[0].body == body


async def test_a_wrong_option_is_refused_before_anything_is_sent() -> None:
    """The caller hears what is wrong with it."""
    theatre = stage()
    with pytest.raises(BadRequest):
        await theatre.chat(request(), headers=[(b"x-usher-defer", b"maybe")])
    assert not theatre.transport.sent


async def test_a_silent_upstream_is_no_client_that_left() -> None:
    """The books say who gave up: here the clock of x-usher-timeout, not the client."""
    theatre = stage(UpstreamTimeout("no answer within 1 s"))
    with pytest.raises(UpstreamTimeout):
        await theatre.chat(request(), headers=[(b"x-usher-timeout", b"1")])
    assert [row.outcome for row in theatre.ledger.rows] == ["upstream_timeout"]


async def test_explain_sends_nothing() -> None:
    """The plan names every tool's fate."""
    theatre = stage()
    plan = await theatre.turn.explain(chat_request(orjson.dumps(request())))
    assert not theatre.transport.sent
    assert {decision["fate"] for decision in plan["decisions"]} == {"deferred"}
    assert len(plan["decisions"]) == 6


@pytest.mark.item("params/store")
async def test_a_completion_that_is_stored_is_the_only_one() -> None:
    """With `store` the client fetches it by the id it saw, so no hidden round may stand there."""
    theatre = stage(completion("Hi"))
    body = orjson.dumps(request(store=True))
    await theatre.chat(body)
    assert theatre.transport.sent[0].body == body


async def test_two_provider_keys_share_nothing_at_the_open_door() -> None:
    """Without gateway keys callers are told apart by their own credentials."""
    theatre = stage(
        completion("Look.", [search("storm warnings")]), completion("Calm.", number=2),
        completion("Bye.", number=3), completion("Bye.", number=4),
    )  # fmt: skip
    user: JSONObject = {"role": "user", "content": "hello"}
    ann: Headers = [(b"authorization", b"Bearer ann")]
    bob: Headers = [(b"authorization", b"Bearer bob")]
    await theatre.chat(request(user), headers=ann)
    history = request(user, {"role": "assistant", "content": "Look.\n\nCalm."}, user)
    await theatre.chat(history, headers=bob)
    assert len(theatre.bodies[2]["messages"]) == 3
    await theatre.chat(history, headers=ann)
    assert len(theatre.bodies[3]["messages"]) == 5
