"""The field `model` of a form, wherever it stands and however it is cut; never a second one."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.edge.multipart import ModelField, find_boundary
from proxy.errors import BadRequest

_FILE = (
    b'--XX\r\nContent-Disposition: form-data; name="file"; filename="a; b.mp3"\r\n'
    b"Content-Type: audio/mpeg\r\n\r\n\x00\r\n--X not yet\r\n\r\n--\r\n"
)
_MODEL = b'--XX\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n'
_END = b"--XX--\r\n"


def _read(*pieces: bytes) -> str | None:
    field = ModelField(b"XX")
    for piece in pieces:
        field.feed(piece)
    return field.model


@pytest.mark.parametrize(
    "body", [_MODEL + _FILE + _END, _FILE + _MODEL + _END, b"hi\r\n" + _MODEL + _END]
)
@given(data=st.data())
def test_however_it_is_cut(body: bytes, data: st.DataObject) -> None:
    """Before the file or after it, in pieces of any size."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    edges = [0, *cuts, len(body)]
    assert _read(*(body[a:b] for a, b in pairwise(edges))) == "whisper-1"
    assert _read(*(body[at : at + 1] for at in range(len(body)))) == "whisper-1"


def test_a_form_without_it() -> None:
    """Nor is a file's content that looks like a field one."""
    assert _read(_FILE, _END) is None
    inner = _MODEL.replace(b"--XX", b"--YY")
    assert _read(_FILE[:-2] + inner + b"\r\n", _END) is None


def test_it_is_known_as_soon_as_it_has_ended() -> None:
    """The rest of the form need not be there."""
    assert _read(_MODEL) is None
    assert _read(_MODEL, b"--XX\r\n") == "whisper-1"


@pytest.mark.parametrize(
    "body",
    [
        _MODEL + _FILE + _MODEL + _END,
        _FILE.replace(b"not yet", b"--XX\r\nx") + _END,
        _MODEL.replace(b"\r\n--XX", b"\n--XX") + b"\n--XX\r\n" + _END,
        _MODEL + b"--XX-more\r\n",
        _MODEL.replace(b'name="model"', b"name*=utf-8''model") + _END,
        _MODEL.replace(b'name="model"', b'name="a"; name="model"') + _END,
        _MODEL.replace(b'"model"', b'"mo\\del"') + _END,
        _MODEL.replace(b"; name", b"; junk name") + _END,
        _MODEL.replace(b"\r\n\r\n", b"\r\nContent-Transfer-Encoding: base64\r\n\r\n") + _END,
        _MODEL.replace(b"whisper-1", b"x" * 2000) + _END,
        b"--XX\r\nX: " + b"x" * 10_000,
        _MODEL.replace(b"form-data", b"attachment") + _END,
        _MODEL.replace(b"; name", b";\r\n name") + _END,
    ],
)
def test_what_could_mean_two_things(body: bytes) -> None:
    """Is refused, because the upstream may read it in the other way."""
    with pytest.raises(BadRequest, match="the model cannot be told"):
        _read(body)


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        (b"multipart/form-data; boundary=abc", b"abc"),
        (b'Multipart/Form-Data; charset=utf-8; Boundary="a b=c"', b"a b=c"),
        (b"multipart/form-data; boundary=a; boundary=b", None),
        (b"multipart/form-data", None),
        (b"application/json; boundary=abc", None),
    ],
)
def test_the_boundary(content_type: bytes, boundary: bytes | None) -> None:
    """As the content type names it, once."""
    assert find_boundary(content_type) == boundary
