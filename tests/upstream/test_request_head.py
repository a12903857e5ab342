"""The bytes of a request's head, and where they go."""

import pytest

from proxy.errors import BadRequest, UpstreamError
from proxy.upstream.request_head import locate, render_head
from proxy.upstream.transport import UpstreamRequest
from proxy.wire import Headers, Repeated


def _render(url: str, body: bytes | None = b"{}", headers: Headers | None = None) -> bytes:
    request = UpstreamRequest("POST", url, headers or [], body, 1.0, 1.0)
    return render_head(request, locate(url))


def test_head_has_host_fields_and_length() -> None:
    """Host comes first, then the fields as given, then the framing."""
    head = _render("http://up:8080/v1/chat?a=%20b", headers=[(b"x-a", b"1")])
    assert head == (
        b"POST /v1/chat?a=%20b HTTP/1.1\r\nhost: up:8080\r\nx-a: 1\r\ncontent-length: 2\r\n\r\n"
    )


def test_empty_body_is_announced() -> None:
    """A POST without a body says so, or servers wait for one."""
    assert b"content-length: 0\r\n" in _render("http://up/", None)


def test_usual_ports_are_left_out() -> None:
    """As browsers write it; some virtual hosts know no other spelling."""
    assert locate("https://up:443/").authority == b"up"
    assert locate("http://[::1]:80/").authority == b"[::1]"


@pytest.mark.parametrize("value", [b"a\r\nx-b: 1", b"a\nb", b"a\0"])
def test_field_that_breaks_out_is_refused(value: bytes) -> None:
    """No header can carry another one along."""
    with pytest.raises(BadRequest):
        _render("http://up/", headers=[(b"x-a", value)])


@pytest.mark.parametrize("url", ["ftp://up/", "http:///x", "http://up:x/", "up"])
def test_url_that_leads_nowhere_is_an_upstream_error(url: str) -> None:
    """What cannot be connected to is told before anything is sent."""
    with pytest.raises(UpstreamError):
        locate(url)


def test_space_in_the_target_is_refused() -> None:
    """A request line has three words."""
    with pytest.raises(BadRequest):
        locate("http://up/a b")


def test_repeated_fields_are_rendered_once() -> None:
    """The method, the place and the length are still those of the request."""
    fields = Repeated([(b"x-a", b"1")], 2, {})
    assert _render("http://up/", headers=fields) == _render("http://up/", headers=list(fields))
    assert len(fields.notes) == 1
    assert b"content-length: 5\r\n" in _render("http://up/", b"12345", fields)
    other = _render("http://down:8080/x", b"12345", fields)
    assert other == _render("http://down:8080/x", b"12345", list(fields))
    with pytest.raises(BadRequest):
        _render("http://up/", headers=Repeated([(b"x-a", b"1\n")], 2, {}))
