"""Settings and command-line flags come in; a gateway runs until a signal stops it."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_address
from pathlib import Path

from proxy.app import build_gateway
from proxy.commands.banner import Start, as_data, as_text
from proxy.commands.listen import listen
from proxy.commands.shared import check_shared
from proxy.commands.workers import Work, serve_app, serve_many
from proxy.config import Source, data_folder, load
from proxy.configfile import Entry, Key
from proxy.errors import ConfigError
from proxy.lasting import open_ring
from proxy.ledger.connect import check_ledger
from proxy.reload import Followed
from proxy.settings import Settings


@dataclass(frozen=True, slots=True)
class Flags:
    """Settings that the command line can set; None leaves them alone."""

    host: str | None = None
    port: int | None = None
    workers: int | None = None
    insecure: bool | None = None
    capture: str | None = None

    def entries(self) -> dict[Key, Entry]:
        """The flags that were given, as values that win over the file and the environment."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            ("prediction" if name == "capture" else "server", name): Entry(value, f"--{name}")
            for name, value in given.items()
            if value is not None
        }


def run(path: Path | None, environ: Mapping[str, str], flags: Flags, *, as_json: bool) -> None:
    """Serve until a signal stops it; what is said at the start goes to stdout with `as_json`."""
    forced: dict[Key, Entry] = {("log", "format"): Entry("json", "--json")} if as_json else {}
    entries = flags.entries() | forced
    loaded = load(path, environ, entries)
    settings, data = loaded.settings, data_folder(environ)
    followed = Followed(Source(loaded.path, entries), loaded.stamp)
    keyed = not open_ring(settings, data).open
    refuse_open_address(settings, keyed=keyed)
    check_ledger(settings.ledger, data)
    check_shared(settings)

    def announce(port: int) -> None:
        start = Start(settings, port, data, loaded.path, keyed, environ)
        if as_json:
            sys.stdout.write(json.dumps(as_data(start)) + "\n")
            sys.stdout.flush()
        else:
            sys.stderr.write(as_text(start) + "\n")

    with listen(settings.server) as listener:
        if settings.server.workers > 1:
            serve_many(Work(settings, data, listener, followed), announce)
            return
        gateway = build_gateway(settings, data, followed=followed)
        serve_app(gateway, settings.server, listener, announce)


def refuse_open_address(settings: Settings, *, keyed: bool) -> None:
    """Beyond loopback anyone could spend the upstream's key: that takes an explicit word."""
    server = settings.server
    if keyed or server.insecure or is_loopback(server.host):
        return
    raise ConfigError(
        f"server.host: {server.host} is open to others and no key is asked for; "
        "make one with `usher key new`, use a loopback address, or say --insecure"
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
