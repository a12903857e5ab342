"""Tool definitions go in; the weighted terms that ranking indexes come out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from proxy.tools.signals import Signals
from proxy.tools.text import name_terms, terms
from proxy.wire import JSON

MAX_DEPTH, MAX_PARAMETERS, MAX_TEXT = 6, 200, 4_000
"""What is read of one schema: enough for every real one, bounded for the others."""
BOILERPLATE_LEAST = 5
"""A parameter that most tools take says nothing about any; in so few tools it still may."""


@dataclass(frozen=True, slots=True)
class Document:
    """A tool as ranking sees it; `parameters` is its raw JSON schema.

    `examples` are requests or other names that an operator knows to mean this tool.
    """

    name: str
    group: str
    description: str
    parameters: bytes | None
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fields:
    """The terms of one document by the place they stand in."""

    name: tuple[str, ...]
    description: tuple[str, ...]
    parameter_names: tuple[str, ...]
    parameter_texts: tuple[str, ...]


Parameter = tuple[str, JSON]
"""(name, schema)."""


class Lexicon:
    """Remembers the terms of texts that occur again and again within one build."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}

    def terms(self, text: str) -> tuple[str, ...]:
        """Terms of a text, computed once."""
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = tuple(terms(text))
        return found


def read_fields(documents: Sequence[Document], signals: Signals) -> list[Fields]:
    """Split every document into terms; parameters that most tools share are left out."""
    schemas = [document.parameters if signals.parameters else None for document in documents]
    parameters = [_read_parameters(schema) for schema in schemas]
    boilerplate = _find_boilerplate(parameters, signals.boilerplate)
    lexicon = Lexicon()
    return [
        _fields(document, [pair for pair in own if pair[0] not in boilerplate], lexicon)
        for document, own in zip(documents, parameters, strict=True)
    ]


def add_examples(
    documents: Sequence[Document], examples: Mapping[str, Sequence[str]]
) -> list[Document]:
    """Attach an operator's examples to the tools that they name."""
    return [
        replace(document, examples=tuple(examples[document.name]))
        if document.name in examples
        else document
        for document in documents
    ]


def read_parameter_names(document: Document) -> list[str]:
    """Names of a tool's parameters, nested ones included."""
    return [name for name, _ in _read_parameters(document.parameters)]


def _fields(document: Document, parameters: list[Parameter], lexicon: Lexicon) -> Fields:
    return Fields(
        name=tuple(name_terms(document.name)),
        description=(
            *lexicon.terms(document.description[:MAX_TEXT]),
            *(term for example in document.examples for term in lexicon.terms(example)),
        ),
        parameter_names=tuple(t for name, _ in parameters for t in name_terms(name)),
        parameter_texts=tuple(t for _, own in parameters for t in lexicon.terms(_describe(own))),
    )


def _find_boilerplate(parameters: Sequence[Sequence[Parameter]], share: float) -> frozenset[str]:
    counts = Counter(name for own in parameters for name in {name for name, _ in own})
    most = max(BOILERPLATE_LEAST, share * len(parameters))
    return frozenset(name for name, count in counts.items() if count > most)


def _read_parameters(schema: bytes | None) -> list[Parameter]:
    if not schema:
        return []
    try:
        root = orjson.loads(schema)
    except orjson.JSONDecodeError:
        return []
    found: list[Parameter] = []
    _collect(root, MAX_DEPTH, found)
    return found[:MAX_PARAMETERS]


def _collect(schema: JSON, depth: int, found: list[Parameter]) -> None:
    """Add a schema's parameters and those inside them; leaves are not looked into."""
    if not isinstance(schema, dict) or not depth or len(found) > MAX_PARAMETERS:
        return
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        found.append((name, inner))
        if isinstance(inner, dict) and ("properties" in inner or "items" in inner):
            _collect(inner, depth - 1, found)
    if "items" in schema:
        _collect(schema["items"], depth - 1, found)


def _describe(schema: JSON) -> str:
    if not isinstance(schema, dict):
        return ""
    text = schema.get("description")
    values = schema.get("enum")
    named = [v for v in values if isinstance(v, str)] if isinstance(values, list) else []
    return " ".join([text[:MAX_TEXT] if isinstance(text, str) else "", *named[:20]]).strip()
