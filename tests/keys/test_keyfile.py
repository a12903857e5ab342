"""The key file is private, whole at every moment, and refuses what it does not understand."""

import functools
import json
import threading
from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.keys.key import GatewayKey, new_secret
from proxy.keys.keyfile import Keys, change_keys, key_path, read_keys


def append(more: GatewayKey, keys: Keys) -> Keys:
    return (*keys, more)


def key(name: str) -> GatewayKey:
    return GatewayKey(name, new_secret()[1], 0.0)


def test_where_it_is() -> None:
    """In the data folder, unless the settings say otherwise."""
    assert key_path(None, Path("/data")) == Path("/data/keys.json")
    assert key_path("/etc/usher/keys.json", Path("/data")) == Path("/etc/usher/keys.json")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """In the order they were made."""
    path = tmp_path / "new" / "keys.json"
    keys = (key("alice"), key("bob"))
    change_keys(path, lambda old: (*old, *keys))
    assert read_keys(path) == keys
    assert path.stat().st_mode & 0o777 == 0o600


def test_no_file_no_keys(tmp_path: Path) -> None:
    """A fresh gateway has none."""
    assert read_keys(tmp_path / "keys.json") == ()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "Input data was truncated"),
        ('{"version": 1, "keys": [{"name": 7}]}', r"Expected `str`, got `int` - at `\$.keys\[0\]"),
        ('{"version": 1, "keys": [], "kays": 1}', "unknown field `kays`"),
        ('{"version": 2, "keys": []}', "newer Usher"),
    ],
)
def test_a_broken_file(tmp_path: Path, content: str, complaint: str) -> None:
    """One line that says where."""
    path = tmp_path / "keys.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=complaint):
        read_keys(path)


def test_a_choice_that_does_not_exist(tmp_path: Path) -> None:
    """A typo in a policy is found when the file is read, not when a request comes."""
    path = tmp_path / "keys.json"
    change_keys(path, lambda _: (key("alice"),))
    content = json.loads(path.read_text())
    content["keys"][0]["policy"] = {"memory": "maybe"}
    path.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="Invalid enum value 'maybe'"):
        read_keys(path)


def test_a_place_that_cannot_be_written() -> None:
    """The operator is told, in one line."""
    with pytest.raises(ConfigError, match=r"keys\.file: cannot write /dev/null/keys\.json"):
        change_keys(Path("/dev/null/keys.json"), lambda keys: keys)
    with pytest.raises(ConfigError, match=r"keys\.file: "):
        read_keys(Path("/dev/null/keys.json"))


def test_two_operators_at_once(tmp_path: Path) -> None:
    """No change is lost, and a reader never sees half a file."""
    path = tmp_path / "keys.json"
    done = threading.Event()
    seen: list[Keys] = []

    def read() -> None:
        while not done.is_set():
            seen.append(read_keys(path))

    def add(name: str) -> None:
        for number in range(10):
            more = key(f"{name}{number}")
            change_keys(path, functools.partial(append, more))

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=add, args=(name,)) for name in "abcd"]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert len(read_keys(path)) == 40
    sizes = [len(keys) for keys in seen]
    assert sizes == sorted(sizes)
