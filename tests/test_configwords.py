"""The words an operator reads about a setting, and the right name for a wrong one."""

import pytest

from proxy.configwords import name_key, nearest, places
from proxy.settings import Settings


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (("deferal",), "deferral"),
        (("deferral", "minTools"), "deferral.min_tools"),
        (("deferral", "min-tools"), "deferral.min_tools"),
        (("Deferral",), "deferral"),
        (("server", "prot"), "server.port"),
        (("min_tools",), "deferral.min_tools"),
        (("upstream", "keep_days"), "ledger.keep_days"),
        (("providers", 0, "modles"), "providers[0].models"),
        (("logging", "level"), "log.level"),
    ],
)
def test_the_nearest_name_is_found(wrong: tuple[str | int, ...], right: str) -> None:
    """Misspelt, dashed, camel-cased or misplaced names all lead to the right one."""
    assert nearest(wrong) == right


def test_nothing_near_is_not_guessed() -> None:
    """A name like no other gets no suggestion."""
    assert nearest(("qqqqq",)) is None


def test_keys_are_spelt_as_paths() -> None:
    """Dots for names and brackets for places in a list."""
    assert name_key(("providers", 0, "name")) == "providers[0].name"


def test_kinds_of_settings_are_known() -> None:
    """Lists are told from plain values, so that variables can be read."""
    known = places(Settings)
    assert known["deferral", "pin"] is list
    assert known["server", "port"] is str
    assert known["upstream", "api_key"] is str
