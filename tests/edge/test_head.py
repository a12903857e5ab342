"""Headers: what the edge reads from them."""

import time

import msgspec
import pytest

from proxy.edge.head import read_head
from proxy.wire import Headers, Repeated


def test_client_request_id_is_kept() -> None:
    """A request id that the client chose is used for everything."""
    assert read_head([(b"x-request-id", b"trace-1:2.a")]).request_id == "trace-1:2.a"


@pytest.mark.parametrize("sent", [b"", b"a b", b"a\nb", b"\xc3\xbc", b"x" * 129, b"-dash"])
def test_unfit_request_id_is_replaced(sent: bytes) -> None:
    """An id that could not stand in a log or a URL is replaced by our own."""
    assert read_head([(b"x-request-id", sent)]).request_id.startswith("req_")


def test_request_ids_differ() -> None:
    """Requests without an id get different ones."""
    assert read_head([]).request_id != read_head([]).request_id


@pytest.mark.parametrize(
    ("headers", "secret", "credential"),
    [
        ([(b"authorization", b"Bearer k1")], "k1", b"authorization"),
        ([(b"authorization", b"bearer  k1 ")], "k1", b"authorization"),
        ([(b"api-key", b"k2")], "k2", b"api-key"),
        ([(b"x-api-key", b"k3")], "k3", b"x-api-key"),
        ([(b"authorization", b"Bearer up"), (b"x-usher-key", b"k4")], "k4", b"x-usher-key"),
        ([(b"authorization", b"Basic abc")], None, None),
        ([], None, None),
    ],
)
def test_secret_is_found(headers: Headers, secret: str | None, credential: bytes | None) -> None:
    """Every SDK's way to send a key is understood; our own header wins."""
    head = read_head(headers)
    assert (head.secret, head.credential) == (secret, credential)


def test_doubled_credential_is_noted() -> None:
    """Two Authorization headers are seen, not merged into one silently."""
    head = read_head([(b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")])
    assert head.doubled == b"authorization"


def test_codings_of_two_headers_are_one_list() -> None:
    """Content codings may come in several headers."""
    head = read_head([(b"content-encoding", b"gzip"), (b"content-encoding", b"br")])
    assert head.encoding == b"gzip,br"


@pytest.mark.parametrize(
    ("headers", "has_body", "length"),
    [
        ([], False, None),
        ([(b"content-length", b"0")], False, 0),
        ([(b"content-length", b"12")], True, 12),
        ([(b"transfer-encoding", b"chunked")], True, None),
        ([(b"content-length", b"+5")], True, None),
    ],
)
def test_body_is_announced(headers: Headers, has_body: bool, length: int | None) -> None:
    """Whether a body follows, and how long it will be."""
    head = read_head(headers)
    assert (head.has_body, head.length) == (has_body, length)


def test_ids_of_our_own_are_in_the_order_of_time() -> None:
    """An index over them grows at its end, which costs the ledger half as much."""
    first = read_head([]).request_id
    time.sleep(0.002)
    assert read_head([]).request_id > first


@pytest.mark.parametrize("own", [[], [(b"x-request-id", b"trace-1")]])
def test_repeated_headers_are_read_once(own: Headers) -> None:
    """Only the length and an id of ours are of the one request."""
    fields: Headers = [(b"authorization", b"Bearer k"), (b"content-length", b"7"), *own]
    notes: dict[str, object] = {}
    first = read_head(Repeated(fields, 7, notes))
    fields[1] = (b"content-length", b"19")
    second = read_head(Repeated(fields, 19, notes))
    parsed = read_head(fields)
    assert (first.length, second.length) == (7, 19)
    assert (first.request_id == second.request_id) == bool(own)
    assert msgspec.structs.replace(second, request_id="") == msgspec.structs.replace(
        parsed, request_id=""
    )
