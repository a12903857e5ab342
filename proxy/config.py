"""A file and the environment come in; frozen settings, each with its origin, go out.

Later wins: default, file, `USHER_SECTION__KEY`, command line. `OPENAI_BASE_URL` and
`OPENAI_API_KEY` fill what is still empty. Only this module reads settings from the environment.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs
from pydantic import ValidationError

from proxy.configfile import Entry, Key, parse_value, read_file
from proxy.configwords import describe, name_key, places
from proxy.errors import ConfigError
from proxy.settings import Settings
from proxy.wire import JSON

OPENAI_URL = "https://api.openai.com/v1"
REFERENCE = re.compile(r"\$(?:\$(?=\{)|\{(?P<name>[A-Za-z_]\w*)(?P<otherwise>:-[^}]*)?\})")
LOOPBACK = {"127.0.0.1", "localhost", "::1", "0.0.0.0"}  # noqa: S104 - compared, never bound


Stamp = tuple[int, int, int]
"""When a file was changed, its size and its number: another one means another content."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The configuration in force; `origins` has an entry for each value that is no default.

    `stamp` is that of the file before it was read.
    """

    settings: Settings
    origins: Mapping[str, str]
    path: Path | None
    stamp: Stamp | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Where a process got its configuration from, to read it again.

    A file that was found once must be there: that it is gone is a mistake, not a wish for defaults.
    """

    path: Path | None
    flags: Mapping[Key, Entry]

    def load(self, environ: Mapping[str, str]) -> Loaded:
        """The configuration as it is now. Raises ConfigError."""
        return load(self.path, environ, self.flags)

    def look(self, environ: Mapping[str, str]) -> Stamp | None:
        """The file's stamp now; None when there is no file."""
        return read_stamp(self.path or find_file(environ))


def load(
    path: Path | None, environ: Mapping[str, str], flags: Mapping[Key, Entry] | None = None
) -> Loaded:
    """Read the configuration; `path` None looks at USHER_CONFIG and then at ./usher.yaml.

    `flags` are settings given on the command line; they win over everything.
    Raises ConfigError with one line per problem.
    """
    path = path or find_file(environ)
    stamp = read_stamp(path)
    entries = read_file(path) if path else {}
    entries = dict(expand(key, entry, environ) for key, entry in entries.items())
    entries = {
        key: entry for key, entry in entries.items() if len(key) > 1 or entry.value is not None
    }
    for key, entry in [*read_environment(environ), *(flags or {}).items()]:
        entries = {old: kept for old, kept in entries.items() if old[: len(key)] != key}
        entries[key] = entry
    entries |= openai_entries(entries, environ)
    try:
        settings = Settings.model_validate(build_tree(entries))
    except ValidationError as error:
        raise ConfigError("\n".join(describe(error, entries))) from None
    refuse_loop(settings)
    origins = {name_key(key): entry.origin for key, entry in entries.items()}
    return Loaded(settings, origins, path, stamp)


def find_file(environ: Mapping[str, str]) -> Path | None:
    """The file that USHER_CONFIG names, else ./usher.yaml when there is one."""
    named = environ.get("USHER_CONFIG")
    if named:
        return Path(named)
    here = Path("usher.yaml")
    return here if here.is_file() else None


def read_stamp(path: Path | None) -> Stamp | None:
    """A file's stamp; None when it is not there."""
    try:
        found = path.stat() if path else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found else None


def data_folder(environ: Mapping[str, str]) -> Path:
    """Where the ledger and other data live: USHER_DATA, else the platform's user data folder."""
    named = environ.get("USHER_DATA")
    return Path(named).expanduser() if named else platformdirs.user_data_path("usher")


def expand(key: Key, entry: Entry, environ: Mapping[str, str]) -> tuple[Key, Entry]:
    """`${NAME}` and `${NAME:-default}` replaced, once; `$${` stands for `${`."""
    if not isinstance(entry.value, str) or "${" not in entry.value:
        return key, entry
    used: list[str] = []

    def replace(match: re.Match[str]) -> str:
        name, otherwise = match["name"], match["otherwise"]
        if name is None:
            return "$"
        used.append(name)
        if environ.get(name) or (otherwise is None and name in environ):
            return environ[name]
        if otherwise is None:
            raise ConfigError(
                f"{entry.origin}: {name_key(key)}: the environment variable {name} is not set"
            )
        return otherwise.removeprefix(":-")

    text = REFERENCE.sub(replace, entry.value)
    origin = f"{entry.origin}, env {', '.join(used)}" if used else entry.origin
    return key, Entry(text or None, origin)


def read_environment(environ: Mapping[str, str]) -> Iterator[tuple[Key, Entry]]:
    """`USHER_SECTION__KEY` variables that hold something.

    A name without `__` is no setting: Kubernetes sets USHER_PORT for a service called usher.
    """
    known = places(Settings)
    for name in sorted(environ):
        if name.startswith("USHER_") and "__" in name and environ[name]:
            key: Key = tuple(name.removeprefix("USHER_").lower().split("__"))
            origin = f"env {name}"
            yield key, Entry(read_variable(environ[name], origin, known.get(key)), origin)


def read_variable(text: str, origin: str, kind: object) -> JSON:
    """A variable's text as its setting wants it: comma lists, JSON, or the text itself."""
    if kind in {list, dict} and text.lstrip().startswith(("[", "{")):
        try:
            return parse_value(text)
        except ConfigError as error:
            raise ConfigError(f"{origin}: {error.message}") from None
    return [part.strip() for part in text.split(",")] if kind is list else text


def openai_entries(entries: Mapping[Key, Entry], environ: Mapping[str, str]) -> dict[Key, Entry]:
    """The SDK's two variables; the key only ever goes to the address that belongs to it."""
    url, key = environ.get("OPENAI_BASE_URL"), environ.get("OPENAI_API_KEY")
    home = url or OPENAI_URL
    found: dict[Key, Entry] = {}
    chosen = entries.get(("upstream", "base_url"))
    if (url or key) and (chosen is None or chosen.value is None):
        chosen = Entry(home, "env OPENAI_BASE_URL" if url else "env OPENAI_API_KEY")
        found["upstream", "base_url"] = chosen
    own = entries.get(("upstream", "api_key"))
    same = chosen is not None and str(chosen.value).rstrip("/") == home.rstrip("/")
    if key and same and (own is None or own.value is None):
        found["upstream", "api_key"] = Entry(key, "env OPENAI_API_KEY")
    return found


def build_tree(entries: Mapping[Key, Entry]) -> JSON:
    """Flat values as nested mappings and lists."""
    tree: dict[str | int, JSON] = {}
    for key, entry in entries.items():
        branch = tree
        for part in key[:-1]:
            step = branch.setdefault(part, {})
            if not isinstance(step, dict):
                raise ConfigError(f"{entry.origin}: {name_key(key)}: both a value and a section")
            branch = step
        branch[key[-1]] = entry.value
    return _lists(tree)


def _lists(tree: JSON) -> JSON:
    if not isinstance(tree, dict):
        return tree
    inner = {name: _lists(child) for name, child in tree.items()}
    numbered = inner and all(isinstance(name, int) for name in inner)
    return list(inner.values()) if numbered else inner


def refuse_loop(settings: Settings) -> None:
    """Usher must not be its own upstream, as when an app's OPENAI_BASE_URL is still exported."""
    url, server = settings.upstream.base_url, settings.server
    if url is None or server.port == 0:
        return
    parts = urlsplit(url)
    if parts.port == server.port and parts.hostname in LOOPBACK | {server.host}:
        raise ConfigError(f"upstream.base_url: {url} is Usher itself; name the real upstream")
