"""OpenAI's API description comes in; the part that the conformance tests use goes out.

    python tests/conformance/trim.py openapi.yaml > tests/conformance/openapi.yaml

The original: https://github.com/openai/openai-openapi, MIT licence (see NOTICE).
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

PATHS = re.compile(r"/(?:chat/completions|models|embeddings)(?:/.*)?")
PROSE = frozenset({"description", "summary", "example", "examples", "x-oaiMeta", "tags"})
"""Keys that explain; below `properties` the same words are names and stay."""


def main() -> None:
    """Print the trimmed description."""
    whole = yaml.load(Path(sys.argv[1]).read_text(encoding="utf-8"), yaml.CSafeLoader)
    yaml.dump(trim(whole), sys.stdout, yaml.CSafeDumper, sort_keys=False, allow_unicode=True)


def trim(whole: dict[str, Any]) -> dict[str, Any]:
    """The wanted paths, and every component that they lead to."""
    paths = {path: item for path, item in whole["paths"].items() if PATHS.fullmatch(path)}
    components: dict[str, dict[str, Any]] = {}
    waiting = list(references(paths))
    while waiting:
        _, _, kind, name = waiting.pop().split("/")
        if name not in components.setdefault(kind, {}):
            components[kind][name] = whole["components"][kind][name]
            waiting += references(components[kind][name])
    components["securitySchemes"] = whole["components"]["securitySchemes"]
    kept = {key: whole[key] for key in ("openapi", "info", "servers", "security")}
    ordered = {kind: dict(sorted(entries.items())) for kind, entries in components.items()}
    return {**kept, "paths": explain_less(paths), "components": explain_less(ordered)}


def references(node: Any) -> Iterator[str]:
    """Every `$ref` and discriminator target below a node."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" or (isinstance(value, str) and value.startswith("#/components/")):
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def explain_less(node: Any, *, names: bool = False) -> Any:
    """The node without prose; `names` says that its keys are names of properties."""
    if isinstance(node, dict):
        return {
            key: explain_less(value, names=key == "properties" and not names)
            for key, value in node.items()
            if names or key not in PROSE or _is_required(key, node)
        }
    return [explain_less(value) for value in node] if isinstance(node, list) else node


def _is_required(key: str, node: dict[str, Any]) -> bool:
    """OpenAPI wants a description of each response, however short."""
    return key == "description" and "content" in node


if __name__ == "__main__":
    main()
