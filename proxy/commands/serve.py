"""Settings and command-line flags come in; a running gateway goes out."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_address
from pathlib import Path

from proxy.app import build_app
from proxy.config import load
from proxy.configfile import Entry, Key
from proxy.edge.server import serve
from proxy.errors import ConfigError
from proxy.settings import Settings


@dataclass(frozen=True, slots=True)
class Flags:
    """Settings of the server that the command line can set; None leaves them alone."""

    host: str | None = None
    port: int | None = None
    workers: int | None = None
    insecure: bool | None = None

    def entries(self) -> dict[Key, Entry]:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            ("server", name): Entry(value, f"--{name}")
            for name, value in given.items()
            if value is not None
        }


def run(path: Path | None, environ: Mapping[str, str], flags: Flags, *, as_json: bool) -> None:
    """Serve until a signal stops it."""
    forced: dict[Key, Entry] = {("log", "format"): Entry("json", "--json")} if as_json else {}
    settings = load(path, environ, flags.entries() | forced).settings
    refuse_open_address(settings)
    serve(build_app(settings), settings)


def refuse_open_address(settings: Settings) -> None:
    """Beyond loopback anyone could spend the upstream's key: that takes an explicit word."""
    server = settings.server
    if server.insecure or is_loopback(server.host):
        return
    raise ConfigError(
        f"server.host: {server.host} is open to others and no key is asked for; "
        "use a loopback address or say --insecure"
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
