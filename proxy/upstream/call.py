"""A request goes in, a response comes out, tried again as long as nothing was accepted."""

import asyncio
import random
from typing import Final

from proxy.errors import ConnectFailed
from proxy.upstream.transport import Transport, UpstreamRequest, UpstreamResponse

FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 2.0


async def call(transport: Transport, request: UpstreamRequest, retries: int) -> UpstreamResponse:
    """Send, and send again up to `retries` times when no connection was made.

    Anything later than that may have been accepted, and a repeat could be paid for twice.
    """
    attempt = 0
    while True:
        try:
            return await transport.send(request)
        except ConnectFailed:
            if attempt >= retries or not request.replayable:
                raise
        await asyncio.sleep(pause_seconds(attempt))
        attempt += 1


def pause_seconds(attempt: int) -> float:
    """Exponential back-off with jitter over its upper half, so that callers spread out."""
    longest = min(FIRST_PAUSE_SECONDS * 2.0**attempt, LONGEST_PAUSE_SECONDS)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311  spreading load, not a secret
