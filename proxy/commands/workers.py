"""Settings come in; several processes serve one socket until a signal stops them all.

Each process has its own memory: parked rounds, prepared catalogues and metrics are not shared.
That costs tokens now and then, never an answer.
"""

import multiprocessing
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

from proxy.app import build_gateway
from proxy.edge.server import Server
from proxy.errors import UsherError
from proxy.settings import Settings

MAX_EARLY = 3
"""So many processes in a row may end before they serve, once others have served."""


@dataclass(frozen=True, slots=True)
class Work:
    """What each process needs; once it serves, it sends its id and port through `ready`."""

    settings: Settings
    data: Path
    listener: socket.socket
    ready: Connection


class Crew:
    """The processes; one that dies is replaced once one has served, unless a signal came."""

    def __init__(self, work: Work, size: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._work = work
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

    def watch(self, ready: Connection, announce: Callable[[int], None]) -> None:
        """Wait until the last one has ended; `announce` gets the port when the first one serves."""
        while self._hired:
            wait([ready, *(member.sentinel for member in self._hired)])
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
        if self._stopping or member.exitcode == 0:
            return
        if member.pid not in self._served:
            self._early += 1
        if self._early and (not self._served or self._early > MAX_EARLY):
            self.stop(signal.SIGTERM, None)
            raise UsherError("a process ended before it served, so Usher stops")
        self._hired.append(self._hire())

    def _hire(self) -> BaseProcess:
        member = self._context.Process(target=serve_one, args=(self._work,))
        member.start()
        return member


def serve_many(
    settings: Settings, data: Path, listener: socket.socket, announce: Callable[[int], None]
) -> None:
    """Serve a socket with `server.workers` processes."""
    ready, sender = multiprocessing.get_context("spawn").Pipe(duplex=False)
    with ready, sender:
        crew = Crew(Work(settings, data, listener, sender), settings.server.workers)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, crew.stop)
        crew.watch(ready, announce)


def serve_one(work: Work) -> None:
    """One process: its own gateway on the shared socket."""
    gateway = build_gateway(work.settings, work.data)

    def report(port: int) -> None:
        work.ready.send((os.getpid(), port))

    Server(gateway.app, work.settings.server, gateway.gate, report).run(sockets=[work.listener])
