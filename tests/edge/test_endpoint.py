"""Endpoints: the function behind them sees a whole, decoded request of a known caller."""

import gzip

import pytest

from proxy.edge.asked import Asked
from proxy.edge.endpoint import Endpoint
from proxy.plan.exchange import Reply
from proxy.plan.identity import Caller
from tests.edge.driver import JSON_TYPE, Client, KeyBook, Rig, ask

pytestmark = pytest.mark.anyio


class Desk:
    """Keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    async def answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        return Reply(200, JSON_TYPE, b"{}")


async def test_function_sees_the_request() -> None:
    """Method, path, query, headers, body and id arrive as they were sent."""
    desk = Desk()
    endpoint = Endpoint(Rig().edge, desk.answer)
    headers = [("x-request-id", "r7"), ("x-one", "1")]
    await ask(endpoint, "PUT", "/usher/memory/x?a=%20&b[]=", b"{}", headers)
    (asked,) = desk.asked
    assert (asked.method, asked.path, asked.query) == ("PUT", "/usher/memory/x", "a=%20&b[]=")
    assert (asked.body, asked.request_id) == (b"{}", "r7")
    assert (b"x-one", b"1") in asked.headers


async def test_a_websocket_is_refused_everywhere() -> None:
    """With a body too: the parser takes it for frames, and half a request must not be answered."""
    desk = Desk()
    offer = [("connection", "upgrade"), ("upgrade", "websocket")]
    answered = await ask(Endpoint(Rig().edge, desk.answer), "POST", "/x", b"{}", offer)
    assert (answered.status, desk.asked) == (501, [])
    assert b'"code":"not_implemented"' in answered.body


async def test_body_is_decoded() -> None:
    """A compressed body arrives decoded, and no header still calls it compressed."""
    desk = Desk()
    packed = gzip.compress(b'{"a":1}')
    await ask(
        Endpoint(Rig().edge, desk.answer), "POST", "/x", packed, [("content-encoding", "gzip")]
    )
    (asked,) = desk.asked
    assert asked.body == b'{"a":1}'
    assert b"content-encoding" not in dict(asked.headers)


async def test_body_over_the_cap_is_refused() -> None:
    """A body over the configured size is a 413 in OpenAI's shape, also without a length."""
    endpoint = Endpoint(Rig(overrides={"server": {"max_body_bytes": 10}}).edge, Desk().answer)
    announced = await ask(endpoint, "POST", "/x", b"x" * 11)
    chunked = await Client(b"x" * 6, b"x" * 6).ask(endpoint, "POST", "/x")
    for answered in (announced, chunked):
        assert answered.status == 413
        assert b'"code":"request_too_large"' in answered.body


async def test_unpacked_body_over_the_cap_is_refused() -> None:
    """The cap counts the decoded body."""
    endpoint = Endpoint(Rig(overrides={"server": {"max_body_bytes": 1000}}).edge, Desk().answer)
    packed = gzip.compress(b"x" * 1001)
    answered = await ask(endpoint, "POST", "/x", packed, [("content-encoding", "gzip")])
    assert answered.status == 413


async def test_unknown_coding_is_refused() -> None:
    """A coding that Usher cannot undo is a 415."""
    endpoint = Endpoint(Rig().edge, Desk().answer)
    answered = await ask(endpoint, "POST", "/x", b"??", [("content-encoding", "snappy")])
    assert answered.status == 415
    assert b'"code":"unsupported_content_encoding"' in answered.body


async def test_caller_is_named() -> None:
    """With keys the function learns who asks, and strangers never reach it."""
    desk = Desk()
    endpoint = Endpoint(Rig(keys=KeyBook({"s3": Caller(key="alice")})).edge, desk.answer)
    known = await ask(endpoint, "GET", "/x", None, [("authorization", "Bearer s3")])
    stranger = await ask(endpoint, "GET", "/x", None, [("authorization", "Bearer s4")])
    assert (known.status, stranger.status) == (200, 401)
    assert [asked.caller.key for asked in desk.asked] == ["alice"]


async def test_client_that_leaves_inside_its_upload_is_no_request() -> None:
    """Half a body is never handed on."""
    desk = Desk()
    client = Client(b"half", cut=True)
    client.leave()
    answered = await client.ask(Endpoint(Rig().edge, desk.answer), "POST", "/x")
    assert answered.status == 0
    assert desk.asked == []
