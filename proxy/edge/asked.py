"""What a function behind the edge is asked."""

from collections.abc import Mapping
from typing import Any

import msgspec

from proxy.plan.identity import Caller
from proxy.wire import Headers


class Asked(msgspec.Struct, frozen=True):
    """A request whose body has been read, decoded, and whose caller is known.

    `params` are what the route found in the path.
    """

    method: str
    path: str
    query: str
    params: Mapping[str, Any]
    headers: Headers
    body: bytes
    caller: Caller
    request_id: str
