"""The settings' models come in; config/usher.yaml, its schema and the handbook's tables go out.

`python -m checks.reference` writes them; `make check` fails when they are not what it would write.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from proxy.settings import Settings

HEADER = """\
# Usher's configuration: every setting with its default. A file needs only what it changes.
#
# Found by --config FILE, else USHER_CONFIG, else ./usher.yaml. `${NAME}` takes a value from the
# environment, `${NAME:-default}` with a fallback. USHER_SECTION__KEY in the environment wins over
# the file: USHER_DEFERRAL__MODE=observe. `usher check` prints what is in force and where from.
"""
WORD = re.compile(r"[A-Za-z][A-Za-z_ ]*")
TABLE_HEAD = ("| setting | default | what it is for |", "|---|---|---|")
TABLES = re.compile(r"(?<=<!-- settings -->\n\n).*(?=\n<!-- /settings -->)", re.DOTALL)


def check_reference(root: Path) -> list[str]:
    """Which of the files differ from what the models say."""
    return [
        f"{path.relative_to(root)}: not what the settings say; run `make schema`"
        for path, text in expected(root).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def expected(root: Path) -> dict[Path, str]:
    """Each file with the text it should have; in the handbook only the tables are ours."""
    page = root / "docs" / "configuration.md"
    prose = page.read_text(encoding="utf-8") if page.exists() else ""
    tables = render_tables(Settings)
    return {
        page: TABLES.sub(lambda _: tables, prose),
        root / "config" / "usher.yaml": render_yaml(Settings),
        root / "config" / "usher.schema.json": render_schema(Settings),
    }


def render_schema(model: type[BaseModel]) -> str:
    """The JSON schema, for editors that check and complete a configuration."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def render_yaml(model: type[BaseModel]) -> str:
    """Every key with its default, under one line of explanation."""
    return HEADER + "\n".join(_render_fields(model, 0)) + "\n"


def render_tables(model: type[BaseModel]) -> str:
    """The settings as Markdown, a table per section."""
    sections = []
    for name, field in model.model_fields.items():
        section = _section(field)
        rows = list(_render_rows(section, f"{name}[]." if field.default == () else f"{name}."))
        sections.append("\n".join([f"### {name}\n\n{explain(field)}\n", *TABLE_HEAD, *rows]))
    return "\n\n".join(sections) + "\n"


def explain(field: FieldInfo) -> str:
    """A field's description, else its section's first sentence; then the words it takes."""
    section = _section(field)
    text = field.description or (section.__doc__ if section else "") or ""
    words = ", ".join(f"`{word}`" for word in _choices(field.annotation))
    choices = f" One of {words}." if words else ""
    return " ".join(text.split("\n\n")[0].split()) + choices


def _choices(annotation: Any) -> Iterator[str]:
    """The words of a Literal, also of one that stands inside `… | None` or a list."""
    for part in get_args(annotation):
        if get_origin(annotation) is not Literal:
            yield from _choices(part)
        elif isinstance(part, str):
            yield part


def _render_rows(section: type[BaseModel] | None, prefix: str) -> Iterator[str]:
    for name, field in section.model_fields.items() if section else ():
        if isinstance(field.default, BaseModel):
            yield from _render_rows(type(field.default), f"{prefix}{name}.")
        else:
            text = explain(field).replace("|", "\\|")
            yield f"| `{prefix}{name}` | {_cell(field)} | {text} |"
            if inner := _section(field):
                element = ".NAME." if _is_named(field) else "[]."
                yield from _render_rows(inner, f"{prefix}{name}{element}")


def _cell(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    plain = _plain(field)
    return "" if plain == "null" else f"`{plain}`"


def _render_fields(model: type[BaseModel], depth: int) -> Iterator[str]:
    for name, field in model.model_fields.items():
        if depth == 0:
            yield ""
        yield _indent(f"# {explain(field)}", depth)
        if isinstance(field.default, BaseModel):
            yield _indent(f"{name}:", depth)
            yield from _render_fields(type(field.default), depth + 1)
            continue
        yield _indent(f"{name}: {_plain(field)}", depth)
        section = _section(field)
        if section:
            named = _is_named(field)
            yield from (_indent(f"# {line}", depth) for line in _render_example(section, named))


def _render_example(section: type[BaseModel], named: bool) -> Iterator[str]:
    """One element of a list, or of a mapping, of sections, to be shown as a comment."""
    if named:
        yield "  NAME:"
    for index, (name, field) in enumerate(section.model_fields.items()):
        yield f"    # {explain(field)}"
        yield f"  {'-' if index == 0 and not named else ' '} {name}: {_plain(field)}"


def _is_named(field: FieldInfo) -> bool:
    """Whether a field holds its sections by name, instead of in a list."""
    return _plain(field) == "{}"


def _plain(field: FieldInfo) -> str:
    """The default as our reader takes it: words need no quotes, not even `on`."""
    if field.is_required():
        return "…"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, str) and WORD.fullmatch(value):
        return value
    value = json.loads(TypeAdapter(type(value)).dump_json(value))
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")


def _section(field: FieldInfo) -> type[BaseModel] | None:
    """The model that a field holds, itself or as elements."""
    for kind in (field.annotation, *get_args(field.annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def _indent(line: str, depth: int) -> str:
    return "  " * depth + line


if __name__ == "__main__":
    for path, text in expected(Path.cwd()).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
