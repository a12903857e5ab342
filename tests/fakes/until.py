"""Waiting for what another thread does, and failing when it never does."""

import asyncio
from collections.abc import Callable


async def until(happened: Callable[[], bool], seconds: float = 10.0) -> None:
    """Return as soon as it has happened."""
    for _ in range(int(seconds * 100)):
        if happened():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"it did not happen within {seconds} s")
