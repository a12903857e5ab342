"""Request headers come in; the few facts that the edge acts on go out."""

import random
import re
import time

import msgspec

from proxy.wire import Headers

KEY_HEADER = b"x-usher-key"
"""For callers that send a gateway key and their own provider's Authorization."""

_CREDENTIALS = (KEY_HEADER, b"authorization", b"api-key", b"x-api-key")
_WANTED = frozenset({
    *_CREDENTIALS, b"content-encoding", b"content-length", b"content-type", b"upgrade",
    b"transfer-encoding", b"x-request-id",
})  # fmt: skip
_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:\-]{0,127}")


class Head(msgspec.Struct, frozen=True, gc=False):
    """What the headers say.

    `credential` names the header that `secret` came in, `doubled` a credential that came twice.
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


def read_head(headers: Headers) -> Head:
    """Read headers whose names are lower case, as ASGI has them."""
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
    return Head(
        request_id=_request_id(found.get(b"x-request-id")),
        secret=secret,
        credential=credential,
        length=int(length) if length.isdigit() else None,
        has_body=length not in {b"", b"0"} or b"transfer-encoding" in found,
        encoding=found.get(b"content-encoding", b""),
        content_type=found.get(b"content-type", b""),
        upgrade=found.get(b"upgrade", b"").lower(),
        doubled=doubled,
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


def _request_id(sent: bytes | None) -> str:
    if sent is not None and _ID.fullmatch(sent):
        return sent.decode()
    return new_request_id()
