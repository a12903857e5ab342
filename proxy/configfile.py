"""A YAML configuration file comes in; every value with the line it stands on goes out.

Only plain YAML 1.2 values are read: `on`, `off`, `yes`, `1:30` and dates stay text, which the
settings then judge by their own types. Aliases are refused, so no file can grow while it is read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

import yaml

from proxy.errors import ConfigError
from proxy.wire import JSON

Key: TypeAlias = tuple[str | int, ...]
"""Where a value stands: ("deferral", "mode") or ("providers", 0, "name")."""

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 16
INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")  # 007 and card numbers stay text
DECIMAL = re.compile(r"[-+]?[0-9]+\.[0-9]+([eE][-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Entry:
    """A scalar, or an empty list or mapping, and where it was written."""

    value: JSON
    origin: str


def read_file(path: Path) -> dict[Key, Entry]:
    """Every value of the file, flat; an empty file has none.

    Raises ConfigError with `file:line` for anything that is not a plain mapping.
    """
    text = read_text(path)
    try:
        node = yaml.compose(text, Loader=_PlainLoader)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{path}:{_line(error)}: {_say(error)}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {str(error).splitlines()[0]}") from None
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{path}: the file must be a mapping of sections, e.g. `server:`")
    return dict(_walk(node, (), path))


def read_text(path: Path) -> str:
    """The file's text, byte order mark removed; ConfigError when it can't be had."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise ConfigError(f"{path}: {reason}") from None
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_BYTES} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text") from None


def parse_value(text: str) -> JSON:
    """A list or mapping written on one line (JSON or YAML), as environment variables hold it.

    Raises ConfigError without repeating the text.
    """
    try:
        node = yaml.compose(text, Loader=_PlainLoader)
    except yaml.YAMLError:
        raise ConfigError("neither JSON nor YAML") from None
    return None if node is None else _construct(node)


def _walk(node: yaml.Node, key: Key, path: Path) -> Iterator[tuple[Key, Entry]]:
    if isinstance(node, yaml.MappingNode) and node.value:
        seen: set[str] = set()
        for name_node, child in node.value:
            if not isinstance(name_node, yaml.ScalarNode):
                raise ConfigError(f"{_place(path, name_node)}: a key must be a plain word")
            name = name_node.value
            if name in seen:
                raise ConfigError(f"{_place(path, name_node)}: `{name}` is given twice")
            seen.add(name)
            yield from _walk(child, (*key, name), path)
    elif isinstance(node, yaml.SequenceNode) and node.value:
        for index, child in enumerate(node.value):
            yield from _walk(child, (*key, index), path)
    else:
        yield key, Entry(_construct(node), _place(path, node))


def _word(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise ConfigError("a key must be a plain word")
    return str(node.value)


def _construct(node: yaml.Node) -> JSON:
    if isinstance(node, yaml.MappingNode):
        return {_word(name): _construct(child) for name, child in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_construct(child) for child in node.value]
    plain = isinstance(node, yaml.ScalarNode) and node.style is None
    return read_scalar(node.value) if plain else node.value


def read_scalar(text: str) -> JSON:
    """What an unquoted word means: nothing, a truth, a number, else the text itself."""
    if text in {"", "~", "null"}:
        return None
    if text in {"true", "false"}:
        return text == "true"
    if INTEGER.fullmatch(text):
        return int(text)
    return float(text) if DECIMAL.fullmatch(text) else text


def _place(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"


def _line(error: yaml.MarkedYAMLError) -> int:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else 1


def _say(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "not YAML"
    if "'\\t'" in problem:
        return "a tab where only spaces may indent"
    return " ".join(problem.split()).removeprefix("but ")


class _PlainLoader(yaml.BaseLoader):
    """Composes a file without aliases, tags and deep nesting."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call] # so in its stubs
        if isinstance(event, yaml.AliasEvent):
            raise _refuse("aliases are not read here", event)
        if getattr(event, "tag", None):
            raise _refuse("tags are not read here", event)
        if self._depth == MAX_DEPTH:
            raise _refuse("nested too deep", event)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _refuse(problem: str, event: yaml.Event) -> yaml.MarkedYAMLError:
    mark = cast("yaml.Mark", event.start_mark)
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
