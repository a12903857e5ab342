"""Heads that a connection has sent before are read as the parser would read them."""

import pytest
from starlette.types import Scope

from proxy.edge.protocol import HEADS_LEARNED
from proxy.edge.repeat import LONGEST_HEAD, KnownHead
from proxy.wire import Headers, Repeated
from tests.edge.told import Told

pytestmark = pytest.mark.anyio

HEAD = (
    b"POST /v1/chat/completions?a=%%20b HTTP/1.1\r\nHost: x\r\nAUTHORIZATION:Bearer sk \r\n"
    b"Content-Length: %d\r\nX-Empty:\r\nx-stainless-os: Linux\r\n\r\n"
)
TAUGHT = HEAD % 2 + b"{}"
OTHER = b'{"messages": []}'
SECOND = HEAD % len(OTHER) + OTHER


def scope_of(headers: Headers, path: bytes = b"/v1/x", query: bytes = b"") -> Scope:
    return {"raw_path": path, "query_string": query, "headers": headers}


async def test_another_request_is_told_as_if_it_had_been_parsed() -> None:
    """In whatever pieces it arrives, and with the headers marked as those of before."""
    fresh = (await Told().read(SECOND)).outcome(0)
    for cut in range(1, len(SECOND)):
        told = await Told().read(TAUGHT, SECOND[:cut], SECOND[cut:])
        assert told.outcome(1) == fresh
        headers = told.asked[1][0]
        assert isinstance(headers, Repeated) == (cut >= SECOND.index(b"{"))
    told = await Told().read(TAUGHT, SECOND)
    headers = told.asked[1][0]
    assert isinstance(headers, Repeated)
    assert headers.length == len(OTHER)
    assert told.outcome(1) == fresh


async def test_any_byte_that_differs_is_left_to_the_parser() -> None:
    """It comes to the same as on a connection that knows no head: heard, refused or waited for."""
    for at in range(len(SECOND) - len(OTHER)):
        for byte in b"\0\t\n\r :;,09A-\x80\xff":
            changed = SECOND[:at] + bytes([byte]) + SECOND[at + 1 :]
            fresh = (await Told().read(changed)).outcome(0)
            told = (await Told().read(TAUGHT, changed)).outcome(1)
            assert told == fresh, f"{byte:#x} at {at}"


@pytest.mark.parametrize("length", [b"0", b"016", b"+16", b"1 6", b"16, 16", b"9" * 11, b"", b"x"])
async def test_other_lengths_are_left_to_the_parser(length: bytes) -> None:
    """None, more than digits, and more of them than a body could have."""
    changed = HEAD.replace(b"%d", length).replace(b"%%", b"%") + OTHER
    fresh = (await Told().read(changed)).outcome(0)
    assert (await Told().read(TAUGHT, changed)).outcome(1) == fresh


async def test_requests_that_come_together() -> None:
    """Two of them in one read, known or not, are both heard, in their order."""
    other = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
    for reads in ((SECOND + other,), (SECOND + TAUGHT,), (SECOND[:-3], SECOND[-3:] + other)):
        fresh = (await Told().read(b"".join(reads))).outcome(0)
        told = (await Told().read(TAUGHT, *reads)).outcome(1)
        assert told == fresh
        assert len(fresh[0]) == 2  # type: ignore[arg-type]  # the requests heard


async def test_a_request_that_is_not_answered_yet_is_not_overtaken() -> None:
    """Its follower waits in uvicorn's queue, as pipelined requests do."""
    told = Told()
    await told.read(TAUGHT)
    told.connection.data_received(SECOND)
    told.connection.data_received(SECOND)
    await told.read(b"")
    await told.read()
    assert [body for _, _, body in told.asked] == [b"{}", OTHER, OTHER]


async def test_states_are_not_shared() -> None:
    """What one request keeps in its state is not in the next one's."""
    told = await Told().read(TAUGHT, SECOND, SECOND)
    states = [own["state"] for _, own, _ in told.asked]
    assert len({id(state) for state in states}) == 3
    assert told.connection.app_state == {"shared": 1}


async def test_a_connection_whose_heads_all_differ_is_not_studied_for_ever() -> None:
    """As that of a proxy, or of a client with an id for each request."""
    told = Told()
    for number in range(HEADS_LEARNED + 1):
        await told.read(HEAD.replace(b"Linux", b"%d" % number).replace(b"%d", b"2") + b"{}")
    before = told.connection._known
    await told.read(TAUGHT)
    assert told.connection._known is before


@pytest.mark.parametrize(
    "head",
    [
        b"POST /v1/x HTTP/1.0\r\nContent-Length: 2\r\n\r\n",
        b"PUT /v1/x HTTP/1.1\r\nContent-Length: 2\r\n\r\n",
        b"POST http://x/v1/x HTTP/1.1\r\nContent-Length: 2\r\n\r\n",
        b"POST /v1/x HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n",
        b"POST /v1/x HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
        b"POST /v1/x HTTP/1.1\r\nContent-Length: 2\r\nUpgrade: h2c\r\n\r\n",
        b"POST /v1/x HTTP/1.1\r\nContent-Length: 2\r\nA: b\n\r\n",
        b"POST /v1/x HTTP/1.1\nContent-Length: 2\r\nA: b\r\n\r\n",
        b"POST /v1/x HTTP/1.1\r\nContent-Length: 2\r\nA: " + b"b" * LONGEST_HEAD + b"\r\n\r\n",
    ],
)
def test_only_the_plainest_heads_are_learned(head: bytes) -> None:
    """Whatever means more than its headers say, or could be cut in another way."""
    lines = head.replace(b"\r\n", b"\n").split(b"\n")[1:-2]
    headers = [
        (name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)
    ]
    assert KnownHead.learn(head + b"{}", scope_of(headers)) is None


def test_a_head_that_the_parser_read_otherwise_is_not_learned() -> None:
    """The parser's word counts."""
    head = b"POST /v1/x HTTP/1.1\r\nContent-Length: 2\r\nA: b\r\n\r\n"
    assert KnownHead.learn(head, scope_of([(b"content-length", b"2"), (b"a", b"b")])) is not None
    assert KnownHead.learn(head, scope_of([(b"content-length", b"2"), (b"a", b"c")])) is None
    assert KnownHead.learn(head, scope_of([(b"content-length", b"2")])) is None


async def test_connections_that_end_with_the_answer_teach_nothing() -> None:
    """There is no next request on them."""
    closing = HEAD.replace(b"X-Empty:", b"Connection: close") % 2 + b"{}"
    assert (await Told().read(closing)).connection._known is None
