"""The file with the gateway keys: read whole, changed under a lock, replaced in one step."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from proxy.errors import ConfigError
from proxy.keys.key import GatewayKey

if sys.platform != "win32":
    import fcntl

VERSION = 1

Keys = tuple[GatewayKey, ...]


class Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is in the file."""

    version: int = VERSION
    keys: Keys = ()


def key_path(setting: str | None, data: Path) -> Path:
    """Where the file is; `data` is the data folder."""
    return data / "keys.json" if setting is None else Path(setting).expanduser()


def read_keys(path: Path) -> Keys:
    """All keys, revoked ones too; none when there is no file. Raises ConfigError."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise ConfigError(f"keys.file: {error}", param="keys.file") from None
    try:
        content = msgspec.json.decode(text, type=Content)
    except msgspec.DecodeError as error:
        raise ConfigError(f"keys.file: {path}: {error}", param="keys.file") from None
    if content.version > VERSION:
        raise ConfigError(
            f"keys.file: {path} was written by a newer Usher (version {content.version})",
            param="keys.file",
        )
    return content.keys


def change_keys(path: Path, change: Callable[[Keys], Keys]) -> None:
    """Apply a change to the newest content; two at once happen one after the other."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(path):
            _replace(path, change(read_keys(path)))
    except OSError as error:
        raise ConfigError(f"keys.file: cannot write {path}: {error}", param="keys.file") from None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """A lock file of its own: the key file itself is replaced."""
    with path.with_suffix(".lock").open("w") as lock:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _replace(path: Path, keys: Keys) -> None:
    """Readers see the old file or the new one, also after a power cut; nobody else may read it."""
    temporary = path.with_suffix(".new")
    text = msgspec.json.format(msgspec.json.encode(Content(keys=keys)), indent=2)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text + b"\n")
        file.flush()
        os.fsync(descriptor)
    temporary.replace(path)
