"""Settings come in; several processes serve one socket until a signal stops them all.

Each follows the configuration by itself. The first process follows it too, for those that it
starts later, and passes SIGHUP on.

Each process has its own memory: prepared catalogues and, without a shared store, parked rounds are
not shared. That costs tokens now and then, never an answer.
"""

import multiprocessing
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from proxy.app import Gateway, build_gateway
from proxy.edge.hangup import SIGHUP, Terminal
from proxy.edge.server import Server as Listener
from proxy.errors import ConfigError, UsherError
from proxy.lasting import FIXED
from proxy.observe.board import retire
from proxy.reload import Followed, keep
from proxy.settings import Server, Settings

MAX_EARLY = 3
"""So many processes in a row may end before they serve, once others have served."""
LOOK_SECONDS = 1.0
"""How often the first process looks at the configuration."""


@dataclass(frozen=True, slots=True)
class Work:
    """What each process needs."""

    settings: Settings
    data: Path
    listener: socket.socket
    followed: Followed | None = None
    counted: Path | None = None
    """The folder where each leaves its metrics."""


class Crew:
    """The processes; one that dies is replaced once one has served, unless a signal came.

    Once a process serves, it sends its id and port through `ready`.
    """

    def __init__(self, work: Work, ready: Connection, size: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._work = work
        self._ready = ready
        self._terminal = Terminal()
        self._stopping = False
        self._served: set[int] = set()
        self._early = 0  # ends before serving, since the last one that served
        self._hired = [self._hire() for _ in range(size)]

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """Pass the signal on; a second one reaches them too and cuts their drain short."""
        self._stopping = True
        for member in self._hired:
            if member.is_alive():
                member.terminate()

    def hang_up(self, number: int, frame: FrameType | None) -> None:
        """Pass SIGHUP on to those that serve; the others read the configuration now anyway."""
        if self._terminal.gone:
            self.stop(number, frame)
            return
        for member in self._hired:
            if member.pid in self._served and member.is_alive():
                os.kill(member.pid or 0, number)

    def watch(self, ready: Connection, announce: Callable[[int], None]) -> None:
        """Wait until the last one has ended; `announce` gets the port when the first one serves."""
        while self._hired:
            wait([ready, *(member.sentinel for member in self._hired)], LOOK_SECONDS)
            self._follow()
            while ready.poll():
                process, port = ready.recv()
                if not self._served:
                    announce(port)
                self._served.add(process)
                self._early = 0
            for member in [one for one in self._hired if not one.is_alive()]:
                self._replace(member)

    def _replace(self, member: BaseProcess) -> None:
        self._hired.remove(member)
        if self._work.counted is not None:
            retire(self._work.counted, member.pid or 0)
        if self._stopping or member.exitcode == 0:
            return
        if member.pid not in self._served:
            self._early += 1
        if self._early and (not self._served or self._early > MAX_EARLY):
            self.stop(signal.SIGTERM, None)
            raise UsherError("a process ended before it served, so Usher stops")
        self._hired.append(self._hire())

    def _follow(self) -> None:
        """Keep the newest valid configuration for whoever is hired next."""
        followed = self._work.followed
        if followed is None or followed.source.look(os.environ) == followed.stamp:
            return
        try:
            loaded = followed.source.load(os.environ)
        except ConfigError:
            return  # whoever serves says so
        settings, _ = keep(FIXED, self._work.settings, loaded.settings)
        source = replace(followed.source, path=loaded.path)
        self._work = replace(
            self._work,
            settings=settings,
            followed=replace(followed, source=source, stamp=loaded.stamp),
        )

    def _hire(self) -> BaseProcess:
        member = self._context.Process(target=serve_one, args=(self._work, self._ready))
        member.start()
        return member


def serve_many(work: Work, announce: Callable[[int], None]) -> None:
    """Serve a socket with `server.workers` processes."""
    ready, sender = multiprocessing.get_context("spawn").Pipe(duplex=False)
    with ready, sender, TemporaryDirectory(prefix="usher-metrics-") as folder:
        work = replace(work, counted=Path(folder))
        crew = Crew(work, sender, work.settings.server.workers)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, crew.stop)
        if SIGHUP is not None:
            signal.signal(SIGHUP, crew.hang_up)
        crew.watch(ready, announce)


def serve_one(work: Work, ready: Connection) -> None:
    """One process: its own gateway on the shared socket."""
    gateway = build_gateway(work.settings, work.data, followed=work.followed)
    if work.counted is not None:
        gateway.metrics.share(work.counted)

    def report(port: int) -> None:
        ready.send((os.getpid(), port))

    serve_app(gateway, work.settings.server, work.listener, report)


def serve_app(
    gateway: Gateway, settings: Server, listener: socket.socket, bound: Callable[[int], None]
) -> None:
    """Serve a gateway on a socket until a signal stops it."""
    hangup = gateway.hangup
    Listener(gateway.app, settings, gateway.gate, bound, hangup).run(sockets=[listener])
