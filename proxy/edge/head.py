"""Request headers come in; the few facts that the edge acts on go out."""

import random
import re
import time

import msgspec

from proxy.wire import Headers, Repeated

KEY_HEADER = b"x-usher-key"
"""For callers that send a gateway key and their own provider's Authorization."""

_CREDENTIALS = (KEY_HEADER, b"authorization", b"api-key", b"x-api-key")
_WANTED = frozenset({
    *_CREDENTIALS, b"content-encoding", b"content-length", b"content-type", b"upgrade",
    b"transfer-encoding", b"x-request-id",
})  # fmt: skip
_NOTE = "head"
_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:\-]{0,127}")


class Head(msgspec.Struct, frozen=True, gc=False):
    """What the headers say.

    `credential` names the header that `secret` came in, `doubled` a credential that came twice.
    `named` says that the id is the client's own.
    """

    request_id: str
    secret: str | None = None
    credential: bytes | None = None
    length: int | None = None
    has_body: bool = False
    encoding: bytes = b""
    content_type: bytes = b""
    upgrade: bytes = b""
    doubled: bytes | None = None
    named: bool = False


def read_head(headers: Headers) -> Head:
    """Read headers whose names are lower case, as ASGI has them."""
    if not isinstance(headers, Repeated):
        return _read(headers)
    known: Head | None = headers.notes.get(_NOTE)
    if known is None:
        head = headers.notes[_NOTE] = _read(headers)
        return head
    request_id = known.request_id if known.named else new_request_id()
    return msgspec.structs.replace(known, length=headers.length, request_id=request_id)


def _read(headers: Headers) -> Head:
    found: dict[bytes, bytes] = {}
    doubled: bytes | None = None
    for name, value in headers:
        if name not in _WANTED:
            continue
        if name not in found:
            found[name] = value
            continue
        found[name] += b"," + value  # RFC 9110 §5.3: the same as one header with commas
        if name in _CREDENTIALS:
            doubled = name
    secret, credential = _find_secret(found)
    length = found.get(b"content-length", b"")
    sent = _usable_id(found.get(b"x-request-id"))
    return Head(
        request_id=sent or new_request_id(),
        secret=secret,
        credential=credential,
        length=int(length) if length.isdigit() else None,
        has_body=length not in {b"", b"0"} or b"transfer-encoding" in found,
        encoding=found.get(b"content-encoding", b""),
        content_type=found.get(b"content-type", b""),
        upgrade=found.get(b"upgrade", b"").lower(),
        doubled=doubled,
        named=sent is not None,
    )


def new_request_id() -> str:
    """An id of our own; it begins with the time, so that an index over ids grows at its end."""
    return f"req_{int(time.time() * 1000) << 80 | random.getrandbits(80):032x}"


def _find_secret(found: dict[bytes, bytes]) -> tuple[str | None, bytes | None]:
    for name in _CREDENTIALS:
        value = found.get(name)
        if value is None:
            continue
        if name != b"authorization":
            return value.decode("latin-1"), name
        scheme, _, token = value.partition(b" ")
        if scheme.lower() == b"bearer":
            return token.strip().decode("latin-1"), name
    return None, None


def _usable_id(sent: bytes | None) -> str | None:
    return sent.decode() if sent is not None and _ID.fullmatch(sent) else None
