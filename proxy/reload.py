"""A changed file or a signal comes in; the settings that are valid go to who serves by them.

What is wrong changes nothing: it is a line in the log and a number in the metrics. What cannot
change while Usher runs keeps its value, and one line names it.
"""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pydantic import BaseModel
from structlog.typing import FilteringBoundLogger

from proxy.config import Source, Stamp, refuse_loop
from proxy.errors import ConfigError, UsherError
from proxy.observe.metrics import Metrics
from proxy.settings import Settings

LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Followed:
    """A configuration to be read again, and the stamp of its file when it was read."""

    source: Source
    stamp: Stamp | None
    environ: Mapping[str, str] | None = None
    seconds: float = LOOK_SECONDS


class Reloader:
    """Follows the configuration for as long as the gateway runs.

    A changed file is read once it has stayed the same from one look to the next, so that one
    which is being written is not read in half; a signal reads it at once.
    """

    def __init__(
        self,
        followed: Followed,
        running: Settings,
        fixed: Sequence[str],
        apply: Callable[[Settings], Awaitable[None]],
    ) -> None:
        self._source = followed.source
        self._environ = os.environ if followed.environ is None else followed.environ
        self._seconds = followed.seconds
        self._read = self._seen = self._taken = followed.stamp
        self._running = running
        self._fixed = fixed
        self._apply = apply
        self._asked = asyncio.Event()

    def hurry(self) -> None:
        """Read the configuration now; on the event loop's thread."""
        self._asked.set()

    async def watch(self, log: FilteringBoundLogger, metrics: Metrics) -> None:
        """Follow the file; runs until it is cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await self._asked.wait()
            asked = self._asked.is_set()
            self._asked.clear()
            stamp = await asyncio.to_thread(self._source.look, self._environ)
            settled, self._seen = stamp == self._seen, stamp
            if asked or (settled and stamp != self._read):
                self._read = stamp
                await self._reload(log, metrics)

    async def _reload(self, log: FilteringBoundLogger, metrics: Metrics) -> None:
        before = self._running
        # Whatever goes wrong with new settings, the gateway goes on with the old ones.
        (outcome,) = await asyncio.gather(self._take(), return_exceptions=True)
        if isinstance(outcome, BaseException):
            metrics.upkeep.config_reloads.add("failed")
            metrics.upkeep.config_stale.set(1)
            log.error("config_not_reloaded", reason=_reason(outcome))
            return
        metrics.upkeep.config_reloads.add("ok")
        metrics.upkeep.config_stale.set(0)
        log.info("config_reloaded", changed=differences(before, self._running))
        if outcome:
            log.warning("needs_a_restart", settings=outcome)

    async def _take(self) -> Sequence[str]:
        """Read, check and apply; the names of settings that need a restart."""
        if _is_empty(self._seen) and not _is_empty(self._taken):
            raise ConfigError("the file is empty, as after a full disk; its settings stay")
        loaded = await asyncio.to_thread(self._source.load, self._environ)
        settings, kept = keep(self._fixed, self._running, loaded.settings)
        refuse_loop(settings)
        await self._apply(settings)
        self._running, self._taken = settings, self._seen
        self._source = replace(self._source, path=loaded.path)
        return kept


def _is_empty(stamp: Stamp | None) -> bool:
    return stamp is not None and stamp[1] == 0


def fingerprint(settings: Settings) -> int:
    """A number that is the same for the same settings; secrets are left out of it."""
    text = settings.model_dump_json().encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:6])  # a float holds 48 bits exactly


def _reason(error: BaseException) -> str:
    """What an operator can act on; the text of a bug of ours may hold a secret."""
    if isinstance(error, UsherError):
        return error.message
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


def keep(
    fixed: Sequence[str], running: Settings, wanted: Settings
) -> tuple[Settings, Sequence[str]]:
    """The wanted settings with those that are fixed as they run, and the names of the latter."""
    kept = [
        name
        for name in differences(running, wanted)
        if any(name == one or name.startswith(f"{one}.") for one in fixed)
    ]
    for name in kept:
        section, _, key = name.partition(".")
        old, new = getattr(running, section), getattr(wanted, section)
        update = {section: new.model_copy(update={key: getattr(old, key)})}
        wanted = wanted.model_copy(update=update)
    return wanted, kept


def differences(one: Settings, other: Settings) -> Sequence[str]:
    """The names of settings whose values differ, by section; never a value."""
    names: list[str] = []
    for section in Settings.model_fields:
        here, there = getattr(one, section), getattr(other, section)
        if not isinstance(here, BaseModel):
            names += [section] * (here != there)
            continue
        names += [
            f"{section}.{key}"
            for key in type(here).model_fields
            if getattr(here, key) != getattr(there, key)
        ]
    return names
