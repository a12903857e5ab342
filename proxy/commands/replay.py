"""A cassette comes in; a local upstream that answers as recorded runs until a signal stops it."""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from proxy.commands.listen import listen
from proxy.commands.output import print_json
from proxy.edge.admit import Gate
from proxy.edge.replay import Replay
from proxy.edge.server import Server
from proxy.observe.log import configure
from proxy.settings import Log
from proxy.settings import Server as ServerSettings
from proxy.upstream.cassette import Cassette, load_cassette

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to play."""

    port: int
    pace_ms: int = 0
    repeat: bool = False
    strict: bool = False


class Told:
    """What happened, told as it happens; on stdout as data, on stderr to people."""

    def __init__(self, cassette: Cassette, *, as_json: bool) -> None:
        self._cassette = cassette
        self._as_json = as_json
        self.missed = 0

    def begin(self, port: int) -> None:
        """It listens now."""
        url = f"http://{HOST}:{port}{self._cassette.base}"
        total = len(self._cassette.interactions)
        self._say(
            {"url": url, "interactions": total},
            f"Replaying {total} recorded answers\n  use it    OPENAI_BASE_URL={url} usher serve",
        )

    def request(self, method: str, target: str, reason: str | None) -> None:
        """A request came."""
        self.missed += reason is not None
        data = {"method": method, "target": target, "played": reason is None, "reason": reason}
        word = "played" if reason is None else f"not recorded ({reason}):"
        self._say(data, f"{word} {method} {target}")

    def end(self) -> None:
        """It has stopped."""
        total, left = len(self._cassette.interactions), len(self._cassette.unplayed)
        if self._as_json:
            print_json({"played": total - left, "unplayed": left, "not_recorded": self.missed})
        else:
            _write(f"{total - left} of {total} played, {self.missed} requests not recorded")

    def _say(self, data: dict[str, object], text: str) -> None:
        if self._as_json:
            sys.stdout.write(json.dumps(data) + "\n")
            sys.stdout.flush()
        else:
            _write(text)


def run(path: Path, wanted: Wanted, *, as_json: bool) -> int:
    """Serve until a signal; with `strict` 1 when something was left over or missing."""
    configure(Log(level="error"))
    cassette = replace(load_cassette(path), repeat=wanted.repeat)
    told = Told(cassette, as_json=as_json)
    app = Replay(cassette, told.request, wanted.pace_ms / 1000)
    settings = ServerSettings(host=HOST, port=wanted.port, drain_seconds=0)
    with listen(settings) as listener:
        Server(app, settings, Gate(), told.begin).run(sockets=[listener])
    told.end()
    return int(wanted.strict and bool(told.missed or cassette.unplayed))


def _write(text: str) -> None:
    sys.stderr.write(text + "\n")
