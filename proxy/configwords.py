"""What pydantic found wrong comes in; one line per problem, with place and remedy, goes out."""

import difflib
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from proxy.configfile import Entry, Key
from proxy.settings import Settings


def describe(error: ValidationError, entries: Mapping[Key, Entry]) -> list[str]:
    """One line per problem: where it was written, which setting, what is wrong with it."""
    return [_line(problem, entries) for problem in error.errors(include_url=False)]


def name_key(key: Key) -> str:
    """`providers[0].name` for ("providers", 0, "name")."""
    words = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in key)
    return "".join(words).removeprefix(".")


def places(model: type[BaseModel], prefix: Key = ()) -> dict[Key, type]:
    """Every setting below a model with what it holds: list, dict, a section's model, or str."""
    found: dict[Key, type] = {}
    for name, field in model.model_fields.items():
        kind = _kind(field.annotation)
        found[*prefix, name] = kind
        if issubclass(kind, BaseModel):
            found |= places(kind, (*prefix, name))
    return found


def nearest(key: Key, model: type[BaseModel] = Settings) -> str | None:
    """The valid key that an unknown one probably meant: by spelling here, else by name anywhere."""
    *above, last = key
    siblings = _fields_at(model, tuple(above))
    plain = _plain(str(last))
    close = difflib.get_close_matches(plain, siblings, n=1)
    if close:
        return name_key((*above, close[0]))
    known = {name_key(place): str(place[-1]) for place in places(model)}
    exact = [name for name, word in known.items() if word == plain]
    if exact:
        return exact[0]
    close = difflib.get_close_matches(name_key(key).replace("-", "_"), known, n=1, cutoff=0.75)
    return close[0] if close else None


def _line(problem: Mapping[str, Any], entries: Mapping[Key, Entry]) -> str:
    key: Key = problem["loc"]
    origin = _origin(key, entries)
    name = name_key(key)
    if problem["type"] != "extra_forbidden":
        return f"{origin}: {name}: {_say(problem)}"
    guess = nearest(key)
    if guess and origin.startswith("env "):
        guess = f"USHER_{guess.replace('.', '__').upper()}"
    return f"{origin}: {name}: no such setting" + (f"; did you mean {guess}?" if guess else "")


def _origin(key: Key, entries: Mapping[Key, Entry]) -> str:
    """Where the value stands, or the first value below it, or the nearest one above it."""
    for length in range(len(key), 0, -1):
        for place, entry in entries.items():
            if place[:length] == key[:length]:
                return entry.origin
    return "configuration"


def _say(problem: Mapping[str, Any]) -> str:
    context = problem.get("ctx", {})
    if problem["type"] == "missing":
        return "is required"
    if problem["type"] == "literal_error":
        return f"must be one of {context['expected'].replace(' or ', ', ')}"
    if problem["type"] in {"model_type", "model_attributes_type", "dict_type"}:
        return "must be a mapping of keys"
    if problem["type"] == "tuple_type":
        return "must be a list"
    return str(problem["msg"]).replace("Input should be", "must be").removeprefix("Value error, ")


def _plain(word: str) -> str:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word)
    return snake.replace("-", "_").lower()


def _fields_at(model: type[BaseModel], key: Key) -> list[str]:
    for part in key:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part)
        below = next(_models(field.annotation), None) if field else None
        if below is None:
            return []
        model = below
    return list(model.model_fields)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def _kind(annotation: Any) -> type:
    outer = get_origin(annotation)
    if outer in {Union, types.UnionType}:
        inner = [_kind(part) for part in get_args(annotation) if part is not type(None)]
        return inner[0]
    if outer in {tuple, list, set, frozenset}:
        return list
    if outer in {dict, Mapping}:
        return dict
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else str
