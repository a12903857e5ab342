"""The README says what is true of this checkout."""

import re

from checks.figures import put_figures
from proxy.demo.command import make_report
from tests.packaging.conftest import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_its_numbers_are_the_demo_s() -> None:
    """The table is what `make demo` measures; `make figures` renews it."""
    assert put_figures(TEXT, make_report()) == TEXT


def test_its_commands_exist() -> None:
    """Each `make …` that it names is a target of the Makefile."""
    targets = set(re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text()))
    named = set(re.findall(r"\bmake ([a-z]+)", TEXT))
    assert {"run", "test"} <= named <= targets


def test_its_links_lead_somewhere() -> None:
    """Each relative link is a file of the repository."""
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
