"""What the edge hands to a turn, and what a turn hands back."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec

from proxy.plan.identity import Caller
from proxy.wire import Headers


class ChatRequest(msgspec.Struct, frozen=True):
    """One intercepted request, its body decoded and within the cap.

    `path` and `query` are the raw bytes of the request line as text. `azure_deployment` is the
    model that an Azure path names.
    """

    path: str
    query: str
    headers: Headers
    body: bytes
    caller: Caller
    request_id: str
    azure_deployment: str | None = None


@dataclass(slots=True)
class Reply:
    """An answer for the client; an iterator is closed by whoever sends it, also half-way.

    `pings` says that Usher writes the stream itself, so keep-alive lines may be put into it.
    """

    status: int
    headers: Headers
    body: bytes | AsyncIterator[bytes]
    pings: bool = False
