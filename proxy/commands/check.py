"""The configuration comes in; every value with its origin goes out, secrets masked."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from proxy.app import build_gateway
from proxy.commands.output import mask_password, print_json, print_table, print_text
from proxy.config import Loaded, data_folder, load
from proxy.errors import ConfigError
from proxy.judge_settings import snake
from proxy.wire import JSON


def run(path: Path | None, environ: Mapping[str, str], *, as_json: bool) -> int:
    """Print the effective configuration; 1 when it cannot be used."""
    try:
        loaded = load(path, environ)
        build_gateway(loaded.settings, data_folder(environ))
    except ConfigError as error:
        if not as_json:
            raise
        print_json({"ok": False, "errors": error.message.splitlines()})
        return 1
    values = list(flatten(loaded.settings.model_dump(mode="json")))
    if as_json:
        settings = dict(values)
        origins = {name: find_origin(loaded, name) for name in settings}
        file = str(loaded.path) if loaded.path else None
        print_json({"ok": True, "file": file, "settings": settings, "origins": origins})
        return 0
    print_text(f"configuration: {loaded.path or 'none, defaults and environment'}")
    rows = ((name, show(value), find_origin(loaded, name)) for name, value in values)
    print_table(("setting", "value", "from"), rows)
    return 0


def flatten(value: JSON, name: str = "") -> Iterator[tuple[str, JSON]]:
    """("server.port", 8787) for each value; passwords inside URLs are masked."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from flatten(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for index, inner in enumerate(value):
            yield from flatten(inner, f"{name}[{index}]")
    else:
        yield name, mask_password(value) if isinstance(value, str) else value


def find_origin(loaded: Loaded, name: str) -> str:
    """Where a value came from; a list's origin is that of its first element."""
    wanted = _spell(name)
    for place, origin in loaded.origins.items():
        written = _spell(place)
        if written == wanted or written.startswith(f"{wanted}["):
            return origin
    return "default"


def _spell(name: str) -> str:
    """A name that may be written as LibreChat does, in one spelling."""
    return ".".join(map(snake, name.split("."))) if name.startswith("classification.") else name


def show(value: JSON) -> str:
    """A value as the configuration file spells it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(str(inner) for inner in value)
    return str(value)
