"""Responses: what a client gets for a reply, and for one that breaks."""

from collections.abc import AsyncIterator

import orjson
import pytest

from proxy.edge.respond import Response, error_reply
from proxy.errors import RateLimited, StreamTruncated, Unauthorized, Unavailable
from proxy.plan.exchange import Reply
from tests.edge.driver import JSON_TYPE, SSE_TYPE, Answered

pytestmark = pytest.mark.anyio

CUT = StreamTruncated("The upstream ended before its answer did.")


class Body:
    """An iterator of chunks that may end in an error; knows whether it was closed."""

    def __init__(self, *chunks: bytes, error: BaseException | None = None) -> None:
        self._chunks = list(chunks)
        self._error = error
        self.closed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._chunks:
            return self._chunks.pop(0)
        raise self._error or StopAsyncIteration

    async def aclose(self) -> None:
        self.closed = True


def _nothing() -> None: ...


async def _write(reply: Reply) -> Answered:
    answered = Answered()
    await Response(answered.send, "req_1", _nothing, _nothing).write(reply, 10)
    return answered


async def _break(reply: Reply) -> Answered:
    """Write a reply whose body breaks, and let the response fail as the edge does."""
    answered = Answered()
    response = Response(answered.send, "req_1", _nothing, _nothing)
    with pytest.raises(StreamTruncated):
        await response.write(reply, 10)
    await response.fail(CUT)
    return answered


@pytest.mark.parametrize("value", [b"a\x01b", b"a\r\nb", b"\x7f"])
async def test_headers_that_http_cannot_carry_stay_behind(value: bytes) -> None:
    """An upstream's broken header costs the client that header, not the answer."""
    answered = await _write(Reply(200, [*JSON_TYPE, (b"x-odd", value)], b"{}"))
    assert answered.headers == {
        "content-type": "application/json",
        "content-length": "2",
        "x-request-id": "req_1",
    }


async def test_whole_reply_has_its_length() -> None:
    """A JSON reply arrives with status, headers and exactly one length."""
    wrong = [*JSON_TYPE, (b"Content-Length", b"999"), (b"Transfer-Encoding", b"chunked")]
    answered = await _write(Reply(418, wrong, b'{"a":1}'))
    assert (answered.status, answered.body) == (418, b'{"a":1}')
    assert answered.headers["content-length"] == "7"
    assert "Transfer-Encoding" not in answered.headers


async def test_upstream_request_id_is_kept() -> None:
    """The upstream's own request id is what its support asks for."""
    answered = await _write(Reply(200, [(b"X-Request-Id", b"up_7")], b""))
    assert answered.headers["X-Request-Id"] == "up_7"
    assert "x-request-id" not in answered.headers


async def test_request_id_is_made() -> None:
    """Without one the reply carries ours."""
    assert (await _write(Reply(200, [], b""))).headers["x-request-id"] == "req_1"


async def test_event_stream_is_not_buffered_on_its_way() -> None:
    """Proxies between Usher and the client are told to pass events on at once."""
    answered = await _write(Reply(200, SSE_TYPE, Body(b"data: 1\n\n", b"data: [DONE]\n\n")))
    assert answered.chunks == [b"data: 1\n\n", b"data: [DONE]\n\n"]
    assert answered.headers["cache-control"] == "no-cache"
    assert answered.headers["x-accel-buffering"] == "no"
    assert "content-length" not in answered.headers


async def test_download_keeps_its_length() -> None:
    """A streamed body that is no event stream keeps the length that the upstream stated."""
    headers = [(b"content-type", b"audio/mpeg"), (b"content-length", b"4")]
    answered = await _write(Reply(206, headers, Body(b"ab", b"", b"cd")))
    assert answered.headers["content-length"] == "4"
    assert answered.chunks == [b"ab", b"cd"]
    assert "cache-control" not in answered.headers


@pytest.mark.parametrize("status", [204, 304])
async def test_bodiless_status_has_no_length(status: int) -> None:
    """204 and 304 are sent without any framing of a body."""
    answered = await _write(Reply(status, [(b"content-length", b"12")], Body()))
    assert answered.complete
    assert "content-length" not in answered.headers
    assert "content-length" not in (await _write(Reply(status, [], b"ignored"))).headers


@pytest.mark.parametrize("status", [999, 600, 101])
async def test_impossible_status_becomes_502(status: int) -> None:
    """A final status that HTTP does not have is a bad gateway."""
    assert (await _write(Reply(status, JSON_TYPE, b"{}"))).status == 502


async def test_body_is_closed_at_its_end() -> None:
    """Whoever made the body learns that nobody reads it any more."""
    body = Body(b"x")
    await _write(Reply(200, [], body))
    assert body.closed


async def test_failure_before_the_first_byte_has_its_real_status() -> None:
    """As long as nothing was sent a broken stream is a plain error."""
    body = Body(error=CUT)
    answered = await _break(Reply(200, SSE_TYPE, body))
    assert answered.status == 502
    assert answered.headers["content-type"] == "application/json"
    assert orjson.loads(answered.body)["error"]["code"] == "stream_truncated"
    assert body.closed


async def test_failure_inside_an_event_stream_is_its_last_event() -> None:
    """Later the error is an event, which every SDK raises, and the stream ends in order."""
    answered = await _break(Reply(200, SSE_TYPE, Body(b"data: 1\n\n", error=CUT)))
    first, error, done = answered.body.split(b"\n\n")[:3]
    assert (first, done) == (b"data: 1", b"data: [DONE]")
    assert orjson.loads(error.removeprefix(b"data: "))["error"] == {
        "message": CUT.message,
        "type": "upstream_error",
        "param": None,
        "code": "stream_truncated",
    }
    assert answered.complete


async def test_half_a_frame_is_ended_first() -> None:
    """An error behind half a frame does not become part of that frame."""
    answered = await _break(Reply(200, SSE_TYPE, Body(b'data: {"half', error=CUT)))
    assert answered.body.startswith(b'data: {"half\n\ndata: {"error"')


@pytest.mark.parametrize(
    "headers", [[(b"content-type", b"audio/mpeg")], [*SSE_TYPE, (b"content-encoding", b"gzip")]]
)
async def test_failure_inside_other_bodies_cuts_them(headers: list[tuple[bytes, bytes]]) -> None:
    """A download that breaks must not look complete, and nothing may be added to it."""
    answered = await _break(Reply(200, headers, Body(b"half", error=CUT)))
    assert answered.body == b"half"
    assert not answered.complete


async def test_failure_after_the_end_is_too_late() -> None:
    """Nothing is added to a response that has ended."""
    answered = Answered()
    response = Response(answered.send, "req_1", _nothing, _nothing)
    await response.write(Reply(200, SSE_TYPE, Body(b"data: [DONE]\n\n")), 10)
    await response.fail(CUT)
    assert answered.body == b"data: [DONE]\n\n"


def test_error_has_all_keys_of_openai() -> None:
    """An error's body has the four keys that SDKs read."""
    reply = error_reply(Unavailable("Later.", param="x"))
    assert reply.status == 503
    assert isinstance(reply.body, bytes)
    assert orjson.loads(reply.body) == {
        "error": {"message": "Later.", "type": "server_error", "param": "x", "code": "unavailable"}
    }


@pytest.mark.parametrize(("seconds", "header"), [(0.2, b"1"), (2.6, b"3"), (30, b"30")])
def test_retry_after_is_in_whole_seconds(seconds: float, header: bytes) -> None:
    """Clients are told when to come back, never at once."""
    assert (
        dict(error_reply(RateLimited("Slow down.", retry_after=seconds)).headers)[b"retry-after"]
        == header
    )


def test_unauthorized_says_how_to_authorize() -> None:
    """A 401 names the scheme, as HTTP demands."""
    assert (b"www-authenticate", b"Bearer") in error_reply(Unauthorized("No.")).headers
