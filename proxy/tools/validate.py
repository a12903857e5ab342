"""A call's arguments and its schema come in; accepted arguments or a complaint go out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import jsonschema_rs
import orjson

from proxy.wire import JSON

MAX_BYTES = 1024 * 1024
"""Larger schemas or arguments are not checked; LiteLLM caps its validation at 1 MiB as well."""
MAX_DEPTH = 64
MAX_COERCIONS = 16
_PYTHON: Mapping[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
}
CLOSE = 0.9
"""difflib ratio from which two names differ by a slip of the pen."""
MIN_CLOSE = 6
"""Shorter names have too many neighbours to be matched by anything but equality."""


@dataclass(frozen=True, slots=True)
class Checked:
    """`arguments` to hand on; when `error` is set they do not fit and `path` says where."""

    arguments: str
    error: str | None = None
    path: str = ""


class Checker:
    """Checks arguments against one tool's schema; compiled once.

    A schema that cannot be compiled (remote references, unknown dialects, too large or too deep)
    accepts every JSON object: the client's own validation decides then.
    """

    __slots__ = ("_validator",)

    def __init__(self, schema: bytes | None) -> None:
        self._validator = _compile(schema)

    def check(self, arguments: str) -> Checked:
        """The verdict on the argument text of one call.

        Arguments that fit are returned as they were written. Otherwise only safe coercions are
        tried ("42" → 42, "true" → true, JSON in a string, one item → list, null of an optional
        property dropped); no value is ever invented.
        """
        value, exact = _read_arguments(arguments)
        if not isinstance(value, dict):
            return Checked(arguments, "the arguments are not a JSON object", "$")
        if self._validator is None or len(arguments) > MAX_BYTES:
            return Checked(arguments if exact else _write(value))
        complaint = problem = next(self._validator.iter_errors(value), None)
        for _ in range(MAX_COERCIONS):
            if problem is None or not _coerce(value, problem):
                break
            problem = next(self._validator.iter_errors(value), None)
        if problem is None:
            return Checked(arguments if exact and complaint is None else _write(value))
        first = complaint or problem
        return Checked(arguments, first.message, _render_path(first))


def _compile(schema: bytes | None) -> jsonschema_rs.Validator | None:
    if schema is None or len(schema) > MAX_BYTES:
        return None
    try:
        tree = orjson.loads(schema)
        if not _is_local(tree):
            return None
        return jsonschema_rs.validator_for(
            tree, offline=True, mask="value", pattern_options=jsonschema_rs.RegexOptions()
        )
    except (ValueError, TypeError, jsonschema_rs.ReferencingError):
        return None


def _is_local(tree: JSON) -> bool:
    """Whether the schema is shallow enough and refers to nothing outside itself."""
    level = [tree]
    for _ in range(MAX_DEPTH):
        if any(_refers_outside(node) for node in level):
            return False
        level = [child for node in level for child in _children(node)]
        if not level:
            return True
    return False


def _refers_outside(node: JSON) -> bool:
    reference = node.get("$ref") if isinstance(node, dict) else None
    return isinstance(reference, str) and not reference.startswith("#")


def _children(node: JSON) -> Iterable[JSON]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def _read_arguments(arguments: str) -> tuple[JSON, bool]:
    """The value, and whether the text is exactly one JSON object.

    Models send nothing at all for tools without parameters, encode twice, or add a stray brace.
    """
    text = arguments.strip()
    if text in ("", "null"):
        return {}, False
    value = _load(text)
    if isinstance(value, str):
        return _load(value), False
    if value is None and text.endswith("}"):
        return _load(text[:-1]), False
    return value, True


def _load(text: str) -> JSON:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _write(value: JSON) -> str:
    return orjson.dumps(value).decode()


def _coerce(root: JSON, problem: jsonschema_rs.ValidationError) -> bool:
    """Changes the offending value in place when that is safe; False when it is not."""
    if not isinstance(problem.kind, jsonschema_rs.ValidationErrorKind.Type):
        return False
    path = list(problem.instance_path)
    if not path:
        return False
    parent = root
    for step in path[:-1]:
        parent = parent[step]
    last = path[-1]
    wanted = problem.kind.types
    if parent[last] is None and isinstance(parent, dict):
        del parent[last]
        return True
    for kind in wanted:
        changed = _convert(parent[last], kind)
        if changed is not None:
            parent[last] = changed
            return True
    return False


def _convert(value: JSON, kind: str) -> JSON:
    """The value as that JSON type, or None when only guessing would get there."""
    if kind == "array" and not isinstance(value, str):
        return [value]
    if not isinstance(value, str):
        return None
    parsed = _load(value.strip())
    if kind == "array":
        return parsed if isinstance(parsed, list) else [value]
    if kind == "boolean" and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if isinstance(parsed, bool):
        return None
    return parsed if isinstance(parsed, _PYTHON.get(kind, ())) else None


def _render_path(problem: jsonschema_rs.ValidationError) -> str:
    return "$" + "".join(_render_step(step) for step in problem.instance_path)


def _render_step(step: str | int) -> str:
    return f"[{step}]" if isinstance(step, int) else f".{step}"


def nearest_names(name: str, names: Sequence[str]) -> list[str]:
    """The known names that a mistaken one most probably means, all of the first tier that has any.

    Tiers: equal when case, punctuation and the prefixes that models add are left out; the end of a
    longer name, as when the server was forgotten; a difference of a letter or two.
    """
    squashed = _squash(name)
    table = {known: _squash(known) for known in names}
    same = [known for known, bare in table.items() if bare == squashed]
    if same or len(squashed) < MIN_CLOSE:
        return same
    ending = [known for known, bare in table.items() if bare.endswith(squashed)]
    return ending or get_close_matches(name, names, n=2, cutoff=CLOSE)


def _squash(name: str) -> str:
    bare = name.strip().lower()
    for prefix in ("functions.", "function.", "tools.", "mcp__", "default_api."):
        bare = bare.removeprefix(prefix)
    return "".join(character for character in bare if character.isalnum())
