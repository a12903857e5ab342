"""A file of JSON lines comes in; its objects, each with where it stands, go out."""

from pathlib import Path

import orjson

from proxy.errors import ConfigError
from proxy.wire import JSONObject

Line = tuple[JSONObject, str]
"""An object, and `file:line` for what may be wrong with it."""


def read_lines(path: Path) -> list[Line]:
    """The objects of a file of JSON lines; empty lines are passed over.

    Raises ConfigError for a file that cannot be read, holds none, or holds anything else: figures
    of half a set would look like figures of the whole.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    found = [
        (_decode(line, f"{path.name} line {number}"), f"{path.name} line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    if not found:
        raise ConfigError(f"{path.name}: there is nothing in it")
    return found


def _decode(line: bytes, where: str) -> JSONObject:
    if line.lstrip().startswith(b"["):
        raise ConfigError(f"{where}: not an object; write one object a line, and no array")
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{where}: not JSON: {error.msg}") from error
    if not isinstance(row, dict):
        raise ConfigError(f"{where}: not an object")
    return row
