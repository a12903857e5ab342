"""Upstream calls carry the right headers."""

import pytest

from proxy.plan.identity import Caller
from proxy.wire import Headers
from tests.turns import (
    completion,
    request,
    search,
    stage,
)

pytestmark = pytest.mark.anyio


async def test_an_idempotency_key_stands_for_one_call() -> None:
    """A server that remembers keys must not answer a later round with an earlier one's reply."""
    theatre = stage(completion(None, [search("storm")]), completion("Calm.", number=2))
    await theatre.chat(request(), headers=[(b"idempotency-key", b"k1")])
    keys = [dict(sent.headers)[b"idempotency-key"] for sent in theatre.transport.sent]
    assert keys == [b"k1", b"k1-r2"]


async def test_a_gateway_key_stays_here() -> None:
    """Only the caller's own credential may be forwarded, and never one of ours."""
    headers: Headers = [(b"authorization", b"Bearer gateway")]
    theatre = stage(completion("Hi"), completion("Hi"))
    await theatre.chat(request(), headers=headers)
    await theatre.chat(request(), headers=headers, caller=Caller(used_gateway_key=True))
    sent = [dict(call.headers).get(b"authorization") for call in theatre.transport.sent]
    assert sent == [b"Bearer gateway", None]


async def test_rounds_ask_for_plain_bytes() -> None:
    """What is inspected is asked for without compression; what passes keeps the client's wish."""
    headers: Headers = [(b"accept-encoding", b"br")]
    theatre = stage(completion("Hi"), completion("Hi"))
    await theatre.chat(request(), headers=headers)
    await theatre.chat({"model": "m", "messages": []}, headers=headers)
    sent = [dict(call.headers)[b"accept-encoding"] for call in theatre.transport.sent]
    assert sent == [b"identity", b"br"]


async def test_a_request_says_how_long_its_upstream_may_be_silent() -> None:
    """x-usher-timeout stands in for upstream.idle_seconds, in streams and later rounds too."""
    theatre = stage(completion(None, [search("storm")]), completion("Calm."), completion("Hi"))
    await theatre.chat(request(), headers=[(b"x-usher-timeout", b"7")])
    await theatre.chat({"model": "m", "messages": []})
    assert [sent.idle_seconds for sent in theatre.transport.sent] == [7, 7, 600]
