"""A JSON schema and the user's words go in; a value that the schema accepts comes out."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from proxy.upstream.standin.words import split, translate
from proxy.wire import JSON, JSONObject

MAX_DEPTH = 8
_QUOTED = re.compile(r"[\"“”„‘’「『«]([^\"“”‘’」』»]+)[\"“”‘’」』»]|(?<!\w)'([^']+)'(?!\w)")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w")
_URL = re.compile(r"https?://[^\s,;)>\"']+")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?![\w-])")
_NAME = re.compile(r"(?:named|called|in|for|at|from|to|of) ([A-Z][\w-]+|\w+(?:-\w+)+)")
_LINK = frozenset({"is", "named", "called", "to", "of", "the", "id", "name", "with", "and", "in"})
_TOKEN = re.compile(r"[^\s,;:!?\"'()]+")
_KINDS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {"email": _EMAIL, "uri": _URL, "url": _URL, "date": _DATE}
)
_HINTS: Mapping[str, str] = MappingProxyType(
    {"email": "email", "to": "email", "recipient": "email", "url": "uri", "uri": "uri"}
)
"""Words in a property's name that say what kind of string it wants."""
_FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "date": "2026-01-31",
        "date-time": "2026-01-31T12:00:00Z",
        "time": "12:00:00Z",
        "email": "someone@example.com",
        "uri": "https://example.com/",
        "url": "https://example.com/",
        "uuid": "00000000-0000-4000-8000-000000000000",
        "ipv4": "192.0.2.1",
        "ipv6": "2001:db8::1",
        "hostname": "example.com",
        "duration": "PT1H",
    }
)


def fill(schema: JSONObject, text: str) -> JSON:
    """Build a value: required properties only, from the text where it says something."""
    return _Filler(schema, _Words(text)).value(schema, "", 0)


@dataclass(slots=True)
class _Words:
    """What the text offers for arguments; quoted text, names and numbers are used up in order."""

    text: str
    used: set[str] = field(default_factory=set)

    def number(self) -> float | None:
        found = self._next(match.group() for match in _NUMBER.finditer(self.text))
        return None if found is None else float(found)

    def string(self, prop: str, kind: str) -> str | None:
        """The text after the property's own name, else something of its kind, else any name."""
        pattern = _KINDS.get(kind)
        if pattern is not None:
            return self._next(match.group() for match in pattern.finditer(self.text))
        return self._after(prop) or self._next(self._phrases())

    def _phrases(self) -> Iterator[str]:
        yield from (first or second for first, second in _QUOTED.findall(self.text))
        yield from (match.group(1) for match in _NAME.finditer(self.text))

    def _next(self, candidates: Iterator[str]) -> str | None:
        for candidate in candidates:
            if candidate not in self.used:
                self.used.add(candidate)
                return candidate
        return None

    def _after(self, prop: str) -> str | None:
        """`resource group rg-prod` gives `rg-prod` for the property `resource-group`."""
        name = [word for word in split(prop) if word not in _LINK]
        tokens = [token.rstrip(".") for token in _TOKEN.findall(self.text)]
        words = [" ".join(split(token)) for token in tokens]
        for start in range(len(words) - len(name)):
            end = start + len(name)
            if name and words[start:end] == name:
                value = next((token for token in tokens[end:] if token.lower() not in _LINK), "")
                # A plain word after it is more often grammar than a value.
                if re.search(r"[\d_.-]|[A-Z]", value) and value not in self.used:
                    self.used.add(value)
                    return value
        return None


@dataclass(slots=True)
class _Filler:
    root: JSONObject
    words: _Words

    def value(self, schema: JSON, prop: str, depth: int) -> JSON:
        schema = self._resolve(schema, depth)
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            return {} if depth == 0 else None
        if "const" in schema:
            return schema["const"]
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return self._option(schema["enum"])
        if "default" in schema and depth:
            return schema["default"]
        return self._build(_kind(schema))(schema, prop, depth)

    def _build(self, kind: str) -> Callable[[JSONObject, str, int], JSON]:
        builders: dict[str, Callable[[JSONObject, str, int], JSON]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": self._number,
            "number": self._number,
            "boolean": lambda *_: True,
        }
        return builders.get(kind, lambda *_: None)

    def _resolve(self, schema: JSON, depth: int) -> JSON:
        """Follow local references and take the first of several alternatives."""
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, dict):
                return schema
            if isinstance(schema.get("$ref"), str):
                schema = _pointer(self.root, schema["$ref"])
            elif schema.get("allOf"):
                schema = _merge(schema, [self._resolve(part, depth) for part in schema["allOf"]])
            else:
                options = schema.get("anyOf") or schema.get("oneOf")
                if not options:
                    return schema
                chosen = next((o for o in options if _kind(o) != "null"), options[0])
                rest = {k: v for k, v in schema.items() if k not in {"anyOf", "oneOf"}}
                schema = _merge(rest, [chosen])
        return schema

    def _option(self, options: list[JSON]) -> JSON:
        """The option that the text names, else the first."""
        text = f" {' '.join(split(translate(self.words.text)))} "
        named = (o for o in options if isinstance(o, str) and f" {' '.join(split(o))} " in text)
        return next(named, options[0])

    def _object(self, schema: JSONObject, _prop: str, depth: int) -> JSON:
        properties = schema.get("properties")
        known = properties if isinstance(properties, dict) else {}
        required = [name for name in schema.get("required") or [] if isinstance(name, str)]
        return {name: self.value(known.get(name, {}), name, depth + 1) for name in required}

    def _array(self, schema: JSONObject, prop: str, depth: int) -> JSON:
        size = max(int(schema.get("minItems") or 0), 1 if depth else 0)
        return [self.value(schema.get("items") or {}, prop, depth + 1) for _ in range(size)]

    def _string(self, schema: JSONObject, prop: str, _depth: int) -> JSON:
        kind = schema.get("format") or next((_HINTS[w] for w in split(prop) if w in _HINTS), "")
        pattern = schema.get("pattern")
        found = self.words.string(prop, kind) or _FORMATS.get(kind) or f"example-{prop or 'value'}"
        if isinstance(pattern, str) and not _matches(pattern, found):
            found = next((v for v in _SAMPLES if _matches(pattern, v)), found)
        return found.ljust(int(schema.get("minLength") or 0), "x")[: schema.get("maxLength")]

    def _number(self, schema: JSONObject, _prop: str, _depth: int) -> JSON:
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is None and schema.get("exclusiveMinimum") is not None:
            low = schema["exclusiveMinimum"] + 1
        found = self.words.number()
        if found is None or not _within(found, low, high):
            found = low if low is not None else 1 if high is None else min(1, high)
        step = schema.get("multipleOf")
        if step:
            found = -(-found // step) * step
        return int(found) if float(found).is_integer() or _kind(schema) == "integer" else found


_SAMPLES = ("a", "A", "1", "example", "Example1", "12345", "2026-01-31", "+15551234567", "1.0.0")


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True


def _kind(schema: JSON) -> str:
    """The type to build: the first that is not null, or what the keywords imply."""
    if not isinstance(schema, dict):
        return ""
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((entry for entry in kind if entry != "null"), "null")
    if isinstance(kind, str):
        return kind
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _merge(schema: JSONObject, parts: list[JSON]) -> JSONObject:
    """One schema that asks for what the schema and all parts ask for, one level deep."""
    merged = {key: value for key, value in schema.items() if key != "allOf"}
    for part in parts:
        for key, value in part.items() if isinstance(part, dict) else ():
            if key == "properties" and isinstance(merged.get(key), dict):
                merged[key] = {**merged[key], **value}
            elif key == "required" and isinstance(merged.get(key), list):
                merged[key] = list(dict.fromkeys([*merged[key], *value]))
            else:
                merged[key] = value
    return merged


def _pointer(root: JSONObject, reference: str) -> JSON:
    """A local `#/$defs/x`; anything else is unknown and therefore unrestricted."""
    if not reference.startswith("#"):
        return {}
    found: JSON = root
    for part in reference[1:].strip("/").split("/") if reference != "#" else ():
        key = part.replace("~1", "/").replace("~0", "~")
        found = found.get(key, {}) if isinstance(found, dict) else {}
    return found
