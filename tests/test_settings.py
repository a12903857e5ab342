"""Promises about all settings at once."""

import pytest
from pydantic import BaseModel, ValidationError

from proxy.configwords import places
from proxy.settings import Deferral, Section, Settings

SECTIONS = [kind for kind in places(Settings).values() if issubclass(kind, BaseModel)]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_setting_is_explained(section: type[Section]) -> None:
    """Each section has a sentence and each key a description that ends like one."""
    assert section.__doc__
    for name, field in section.model_fields.items():
        assert field.description or isinstance(field.default, BaseModel), name
        assert "\n" not in (field.description or "")


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_section_is_frozen_and_closed(section: type[Section]) -> None:
    """No section can be changed afterwards or take a key that it does not know."""
    assert section.model_config["frozen"]
    assert section.model_config["extra"] == "forbid"


def test_secrets_do_not_print() -> None:
    """The text of the settings shows no credential."""
    settings = Settings.model_validate({"upstream": {"api_key": "sk-secret"}})
    assert "sk-secret" not in repr(settings)
    assert "sk-secret" not in settings.model_dump_json()


def test_names_that_hold_credentials_are_secrets() -> None:
    """Whatever is called a key, token or password has the type that hides it."""
    fields = [item for section in SECTIONS for item in section.model_fields.items()]
    named = [(n, f) for n, f in fields if n.endswith(("api_key", "secret", "password"))]
    assert named
    assert all("SecretStr" in str(field.annotation) for _, field in named)


def test_an_unknown_key_is_refused() -> None:
    """A typo is never silently ignored."""
    with pytest.raises(ValidationError):
        Settings.model_validate({"server": {"prt": 1}})


@pytest.mark.parametrize("name", ["", "bad name!", "x" * 65])
def test_a_search_tool_needs_a_name_that_providers_take(name: str) -> None:
    """Else every request of everybody would be refused upstream."""
    with pytest.raises(ValidationError):
        Deferral(search_name=name)
