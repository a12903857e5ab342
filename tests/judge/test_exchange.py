"""Attempts, back-off and the deadline, over sockets where it matters."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from proxy.errors import ConnectFailed, StreamTruncated, UpstreamTimeout
from proxy.judge.exchange import MAX_REPLY_BYTES, Endpoint, Exchange, estimate_tokens, parse
from proxy.judge.failures import Failed, Failure
from proxy.judge.job import Attempt
from proxy.judge.questions import NoulAnswer
from proxy.judge.reading import Reading
from proxy.judge.systemone import decode
from proxy.upstream.aiohttp_transport import AiohttpTransport
from proxy.upstream.transport import Prepared, Transport
from proxy.wire import JSON, Headers
from tests.fakes.scripted import CUT, HANG, Drip, ScriptedUpstream, Wait
from tests.fakes.transport import FakeTransport
from tests.judge.fakes import JUDGED, NO_SPAM, SPAM, Silence, make_job, reply

pytestmark = pytest.mark.anyio

SOON: Headers = [(b"retry-after-ms", b"1")]
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def exchange(
    transport: Transport, url: str = "http://j/v1/systemone", retries: int = 1
) -> Exchange:
    return Exchange(transport, Endpoint("test", "jev-latest", url, [], retries))


def read(body: JSON) -> Reading:
    return decode(body, SPAM)


async def post(
    transport: Transport, attempts: list[Attempt], seconds: float = 2.0, **kwargs: Any
) -> Reading:
    job = make_job("hello", SPAM, attempts, seconds)
    return await exchange(transport, **kwargs).post({"model": "m"}, read, job)


@pytest.mark.parametrize(
    ("first", "outcome", "retried"),
    [
        (reply({}, 429, SOON), "rate_limited", True),
        (reply({}, 408, SOON), "rate_limited", True),
        (reply({}, 500, SOON), "server_error", True),
        (reply({}, 529, SOON), "server_error", True),
        (ConnectFailed("no"), "network", True),
        (StreamTruncated("cut"), "network", True),
        (UpstreamTimeout("quiet"), "timeout", False),
        (reply({}, 400), "bad_request", False),
        (reply({}, 401), "unauthorized", False),
        (reply({}, 402), "payment", False),
        (reply({}, 403), "unauthorized", False),
        (reply({}, 404), "bad_request", False),
        (reply({}, 413), "too_large", False),
        (reply({}, 422), "bad_request", False),
        (reply(b"no json"), "malformed", False),
        (reply({"answers": []}), "malformed", False),
    ],
)
async def test_what_is_tried_again(first: Any, outcome: str, retried: bool) -> None:
    """Every row of the error table: the attempt's outcome, and whether a second one is made."""
    attempts: list[Attempt] = []
    transport = FakeTransport(first, reply(JUDGED))
    if retried:
        reading = await post(transport, attempts)
        assert reading.answers == {"spam": NoulAnswer(0.09)}
        assert [a.outcome for a in attempts] == [outcome, "ok"]
        assert [a.attempt for a in attempts] == [0, 1]
    else:
        with pytest.raises(Failed) as failed:
            await post(transport, attempts)
        assert failed.value.failure.value == outcome
        assert [a.outcome for a in attempts] == [outcome]


async def test_a_wait_that_does_not_fit_is_not_waited() -> None:
    """Retry-After of a minute with two seconds left ends it at once."""
    attempts: list[Attempt] = []
    begun = time.monotonic()
    with pytest.raises(Failed, match="429"):
        await post(FakeTransport(reply({}, 429, [(b"retry-after", b"60")])), attempts)
    assert time.monotonic() - begun < 0.5
    assert len(attempts) == 1


async def test_retries_end() -> None:
    """One further attempt, not two."""
    attempts: list[Attempt] = []
    transport = FakeTransport(reply({}, 503, SOON), reply({}, 503, SOON), reply(JUDGED))
    with pytest.raises(Failed, match="503"):
        await post(transport, attempts)
    assert len(attempts) == 2


async def test_without_a_hint_the_wait_grows_from_a_quarter_second() -> None:
    """So a hiccup is retried soon."""
    begun = time.monotonic()
    await post(FakeTransport(reply({}, 500), reply(JUDGED)), [])
    assert 0.2 < time.monotonic() - begun < 1.0


async def test_a_silent_server_costs_the_deadline_and_is_billed_as_an_estimate() -> None:
    """It may have read everything, so the row has estimated tokens."""
    attempts: list[Attempt] = []
    begun = time.monotonic()
    with pytest.raises(Failed, match="timeout"):
        await post(Silence(), attempts, seconds=0.1)
    assert 0.08 < time.monotonic() - begun < 0.3
    assert attempts[0].outcome == "timeout"
    assert attempts[0].estimate == estimate_tokens(len(b'{"model":"m"}'))


async def test_a_caller_that_leaves_is_recorded() -> None:
    """The attempt is on the books as aborted, and the cancellation goes on."""
    attempts: list[Attempt] = []
    task = asyncio.get_running_loop().create_task(post(Silence(), attempts))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [(a.outcome, a.estimate is not None) for a in attempts] == [("aborted", True)]


async def test_failures_before_an_answer_are_not_billed() -> None:
    """A refused key costs nothing."""
    attempts: list[Attempt] = []
    with pytest.raises(Failed):
        await post(FakeTransport(reply({}, 401)), attempts)
    assert (attempts[0].estimate, attempts[0].status) == (None, 401)


async def test_the_providers_request_id_is_kept() -> None:
    """For the support ticket."""
    headers: Headers = [(b"X-TypeSafe-Request-Id", b"req-1")]
    reading = await post(FakeTransport(reply(JUDGED, 200, headers)), [])
    assert reading.provider_request_id == "req-1"
    assert (await post(FakeTransport(reply(JUDGED)), [])).provider_request_id is None


async def test_an_endless_reply_is_cut_off() -> None:
    """A lying server cannot fill the memory."""
    with pytest.raises(Failed, match="malformed"):
        await post(FakeTransport(reply(b" " * (MAX_REPLY_BYTES + 1))), [])


class Whole(Prepared):
    """An answer of which the transport has everything already."""

    closed = False

    def take_whole(self) -> bytes:
        assert isinstance(self._body, bytes)
        return self._body

    def chunks(self) -> AsyncIterator[bytes]:
        raise AssertionError("nothing is left to wait for")

    async def aclose(self) -> None:
        self.closed = True


async def test_an_answer_that_is_here_already_is_not_waited_for() -> None:
    """Its size is bounded all the same, and its connection given back."""
    whole = Whole(200, [], orjson.dumps(JUDGED))
    assert (await post(FakeTransport(whole), [])).answers == {"spam": NoulAnswer(0.09)}
    huge = Whole(200, [], b" " * (MAX_REPLY_BYTES + 1))
    with pytest.raises(Failed, match="malformed"):
        await post(FakeTransport(huge), [])
    assert (whole.closed, huge.closed) == (True, True)


async def test_a_transport_is_given_the_same_patience_from_request_to_request() -> None:
    """Then its clock need not be set again; the deadline itself is kept to the millisecond."""
    transport = FakeTransport(reply(JUDGED), reply(JUDGED))
    await post(transport, [], seconds=1.7)
    await post(transport, [], seconds=1.6)
    assert [request.idle_seconds for request in transport.sent] == [2, 2]


def test_nan_is_read_so_that_only_its_question_is_lost() -> None:
    """It is no JSON, but many servers print it."""
    assert parse(b'{"a": 1}') == {"a": 1}
    assert parse(b'{"a": NaN}')["a"] != parse(b'{"a": NaN}')["a"]
    assert parse(b"<html>") is None
    assert parse(b"[" * 100_000) is None


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        ([OK + b"Content-Length: 500\r\n\r\n{", HANG], Failure.TIMEOUT),
        ([OK + b"Content-Length: 500\r\n\r\n{", CUT], Failure.NETWORK),
        ([Wait(5)], Failure.TIMEOUT),
        ([CUT], Failure.NETWORK),
        ([OK + b"Content-Length: 500\r\n\r\n", Drip(b" " * 500, 1), HANG], Failure.MALFORMED),
    ],
)
async def test_servers_that_stop_in_the_middle(script: Any, failure: Failure) -> None:
    """Over a real connection: never longer than the deadline, whatever the server does."""
    transport = AiohttpTransport()
    begun = time.monotonic()
    async with ScriptedUpstream(script, script, script) as upstream:
        with pytest.raises(Failed) as failed:
            await post(transport, [], seconds=0.4, url=upstream.url + "/v1/systemone")
        await transport.aclose()
    assert failed.value.failure is failure
    assert time.monotonic() - begun < 0.7


async def test_a_whole_exchange_over_a_socket() -> None:
    """What the server sees is one request with the body we made."""
    data = orjson.dumps(NO_SPAM)
    answer = OK + b"Content-Length: %d\r\n\r\n" % len(data) + data
    transport = AiohttpTransport()
    async with ScriptedUpstream([answer]) as upstream:
        reading = await post(transport, [], url=upstream.url + "/v1/systemone")
        assert upstream.requests[0].body == b'{"model":"m"}'
        await transport.aclose()
    assert reading.answers == {"spam": NoulAnswer(0.09)}
