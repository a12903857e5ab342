"""Each gate of `make check` finds what it is there for, in a small project that breaks its rule."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
import yaml
from pydantic import BaseModel, Field

from checks import parity
from checks.dependencies import check_dependencies
from checks.items import check_items, find_claims, read_items, render_page
from checks.mirror import check_mirror
from checks.prose import check_guards, check_source, check_tests, check_text
from checks.reference import check_reference, render_yaml
from checks.sizes import check_sizes, summarise
from checks.sources import Source, read_sources
from proxy.settings import Settings

Project: TypeAlias = Callable[[dict[str, str]], Path]

ROOT = Path(__file__).resolve().parents[2]
GUARD = "try:\n    x()\nexcept Exception:\n    pass\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Writes files into an empty project and says where it is."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def one_source(project: Project, text: str, name: str = "proxy/a.py") -> Source:
    """A project's only source."""
    return read_sources(project({name: text}), name.split("/", maxsplit=1)[0])[0]


def test_long_modules_and_functions_are_found(project: Project) -> None:
    """401 lines and 81 lines are one too many; 400 and 80 are not."""
    body = "    pass\n"
    root = project(
        {
            "proxy/long.py": "x = 1\n" * 401,
            "proxy/fine.py": "x = 1\n" * 400,
            "proxy/tall.py": f"def f():\n{body * 80}\n\ndef g():\n{body * 79}",
        }
    )
    assert check_sizes(root) == [
        "proxy/long.py: 401 lines, at most 400",
        "proxy/tall.py:1 f: 81 lines, at most 80",
    ]
    assert "401 proxy/long.py" in summarise(root)


def test_the_mirror_works_both_ways(project: Project) -> None:
    """A module without its test and a test without its module are both named."""
    root = project(
        {
            "proxy/cli.py": "",
            "proxy/stream/__init__.py": "",
            "proxy/stream/sse.py": "",
            "proxy/stream/splice.py": "",
            "proxy/ledger/migrations/0001.py": "",
            "tests/test_cli.py": "",
            "tests/stream/test_sse_chunks.py": "",
            "tests/stream/test_gone.py": "",
            "tests/whole/test_anything.py": "",
        }
    )
    assert check_mirror(root) == [
        "proxy/stream/splice.py: no tests/stream/test_splice.py",
        "tests/stream/test_gone.py: no module of proxy that it tests",
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""Bytes in, frames out."""\n', 0),
        ("", 0),
        ("x = 1\n", 1),
        ('"""No sentence"""\n', 1),
        ('"""One."""\nx = 1  # noqa: E741\n', 1),
        ('"""One."""\nx = 1  # noqa: E741 - the formula\'s name\n', 0),
        ('"""One."""\nx = 1  # type: ignore[misc]\n', 1),
        ('"""One."""\nx = 1  # type: ignore[misc] # its stubs lie\n', 0),
    ],
)
def test_openings_and_reasons(project: Project, text: str, found: int) -> None:
    """A module needs its sentence and a silenced tool its reason."""
    assert len(list(check_source(one_source(project, text)))) == found


def test_a_test_without_a_sentence_is_found(project: Project) -> None:
    """Tests say what they prove; their fixtures need not."""
    text = "def test_a(): pass\ndef fake(): pass\n"
    source = one_source(project, text, "tests/test_a.py")
    assert list(check_tests(source)) == ["tests/test_a.py:1: test_a needs a one-sentence docstring"]


def test_a_third_broad_guard_is_one_too_many(project: Project) -> None:
    """Two places may catch everything; precise ones and those that raise again are free."""
    free = GUARD.replace("Exception", "ValueError") + GUARD.replace("pass", "raise")
    source = one_source(project, GUARD * 3 + free)
    assert len(check_guards([source])) == 1


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("see https://" + "pypi.org/simple", "a package registry's address"),
        ("cd /" + "work/main", "a path of one machine"),
        ("key: sk-" + "a" * 40, "a credential"),
    ],
)
def test_what_must_not_be_committed_is_found(text: str, what: str) -> None:
    """Registry addresses, machine paths and credentials are named by file and line."""
    assert list(check_text(Path("a.md"), text)) == [f"a.md:1: {what}"]
    assert not list(check_text(Path("a.md"), "https://api.openai.com/v1 and /v1/models"))


class Inner(BaseModel):
    """A part."""

    mode: str = Field("on", description="What it does.")


class Whole(BaseModel):
    """Everything."""

    part: Inner = Inner()
    parts: tuple[Inner, ...] = ()


def test_the_reference_file_explains_each_key() -> None:
    """Sections, defaults and an example of each list element, with their sentences."""
    assert render_yaml(Whole).split("\n\n", 1)[1] == (
        "# A part.\npart:\n  # What it does.\n  mode: on\n\n"
        "# A part.\nparts: []\n#     # What it does.\n#   - mode: on\n"
    )


def test_the_reference_file_shows_sections_as_they_are_written() -> None:
    """Uncommented, an example is accepted: a list where one is due, else a mapping of names."""
    text = (ROOT / "config" / "usher.yaml").read_text(encoding="utf-8")
    block = text.partition("  providers: {}\n")[2].partition("  # A chat model")[0]
    shown = yaml.safe_load("\n".join(line[4:] for line in block.splitlines()))
    assert shown["NAME"]["preset"] == "systemone"
    Settings.model_validate({"classification": {"providers": shown}})


def test_the_schema_accepts_the_reference_file() -> None:
    """An editor that knows the schema finds nothing wrong with config/usher.yaml."""
    config = ROOT / "config"
    schema = json.loads((config / "usher.schema.json").read_text())
    values = yaml.load((config / "usher.yaml").read_text(), Loader=yaml.BaseLoader)
    assert schema["additionalProperties"] is False
    assert values.keys() == schema["properties"].keys()


def test_an_outdated_reference_is_found(project: Project) -> None:
    """A file that was edited by hand, or forgotten, is named."""
    assert check_reference(project({"config/usher.yaml": "old"})) == [
        "docs/configuration.md: not what the settings say; run `make schema`",
        "config/usher.yaml: not what the settings say; run `make schema`",
        "config/usher.schema.json: not what the settings say; run `make schema`",
    ]


def test_undocumented_names_are_found(project: Project) -> None:
    """A header, a metric and a command that no page names are listed."""
    root = project(
        {
            "proxy/edge/head.py": "A = 'x-usher-tools'\nB = 'x-usher-new'\n",
            "proxy/observe/metrics.py": "A = 'usher_requests_total'\n",
            "docs/headers.md": "`x-usher-tools`",
        }
    )
    found = parity.check_parity(root)
    assert "docs: the header `x-usher-new` is on no page" in found
    assert "docs: the header `x-usher-tools` is on no page" not in found
    assert "docs: the metric `usher_requests_total` is on no page" in found
    assert "docs: the command `usher serve` is on no page" in found


def test_edge_cases_and_tests_must_match(project: Project) -> None:
    """An item without a test, a marker without an item, and a page of yesterday are named."""
    marks = '@pytest.mark.item("a/one", "a/three")\ndef test_it(): pass\n'
    root = project(
        {"tests/edge_items.toml": '[a]\none = "1"\ntwo = "2"\n', "tests/test_a.py": marks}
    )
    assert check_items(root) == [
        "tests/edge_items.toml: no test claims a/two",
        "test_a.py::test_it: there is no item a/three",
        "docs/edge-cases.md: not what the tests say; run `make items`",
    ]
    project({"docs/edge-cases.md": render_page(read_items(root), find_claims(root))})
    assert "| 1 | `test_a.py::test_it` |" in (root / "docs/edge-cases.md").read_text()
    assert len(check_items(root)) == 2


def test_dependencies_are_declared_used_and_explained(project: Project) -> None:
    """An import without declaration; a declaration without import, without reason, unpinned."""
    root = project(
        {
            "proxy/a.py": "import json\nimport orjson\nfrom proxy import b\nimport yaml\n",
            "pyproject.toml": '[project]\ndependencies = ["PyYAML>=6", "rich", "uvloop"]\n',
            "docs/dependencies.md": "pyyaml, rich",
            "requirements-dev.lock": "pyyaml==6.0\nuvloop==1.0\n",
        }
    )
    assert check_dependencies(root) == [
        "proxy/a.py:2: orjson comes from no declared dependency",
        "pyproject.toml: rich is imported nowhere",
        "docs/dependencies.md: no reason for uvloop",
        "requirements-dev.lock: rich is not pinned; run `make lock`",
    ]
