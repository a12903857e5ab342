"""Whose memories a request is about."""

import pytest

from proxy.errors import BadRequest
from proxy.memory.principal import Absent, Claim, Principal, identify, tenant_of
from proxy.memory_settings import Memory
from proxy.plan.identity import Caller

OPEN = Caller()
KEYED = Caller(tenant="acme", key="app")


def who(claim: Claim, **settings: object) -> Principal | Absent:
    return identify(claim, Memory.model_validate(settings))


@pytest.mark.parametrize(
    ("preset", "header"),
    [
        ("openwebui", b"X-OpenWebUI-User-Id"),
        ("librechat", b"x-librechat-user-id"),
        ("supermemory", b"x-sm-user-id"),
        ("litellm", b"x-litellm-end-user-id"),
    ],
)
def test_presets_know_the_applications_headers(preset: str, header: bytes) -> None:
    """An application's name stands for the headers in which it names its user."""
    assert who(Claim(OPEN, [(header, b"ali")]), user_headers=[preset]) == Principal(
        "default", "ali"
    )
    assert who(Claim(OPEN, [(header, b"ali")])) == Absent("no_user")


def test_a_bound_user_cannot_be_overridden() -> None:
    """A key that belongs to somebody speaks for nobody else."""
    bound = Caller(tenant="t", key="k", user="ali")
    assert who(Claim(bound, [], "eva")) == Absent("conflicting_users")
    assert who(Claim(bound, [], None)) == Principal("t", "ali")


@pytest.mark.parametrize(
    "body",
    [{"user": "ali"}, {"metadata": {"user_id": "ali"}}, {"safety_identifier": "ali"}],
)
def test_the_body_is_believed_only_at_the_open_door(body: dict[str, object]) -> None:
    """With gateway keys a body's user is hearsay, unless the operator trusts it."""
    assert who(Claim(OPEN, [], body=body)) == Principal("default", "ali")
    assert who(Claim(KEYED, [], body=body)) == Absent("no_user")
    assert who(Claim(KEYED, [], body=body), trust="body") == Principal("acme", "ali")
    assert who(Claim(OPEN, [], body=body), trust="none") == Absent("no_user")


def test_a_structured_id_is_no_user() -> None:
    """Claude Code's JSON of device and session is not a person."""
    assert who(Claim(OPEN, [], body={"metadata": {"user_id": '{"device_id":1}'}})) == Absent(
        "no_user"
    )


def test_two_users() -> None:
    """No memory for a request that names two; a 400 where the operator is strict."""
    claim = Claim(OPEN, [(b"x-sm-user-id", b"eva")], "ali")
    assert who(claim, user_headers=["supermemory"]) == Absent("conflicting_users")
    with pytest.raises(BadRequest):
        who(claim, user_headers=["supermemory"], strict=True)


def test_a_name_that_is_not_utf_8_is_nobody() -> None:
    """Read as anything else it could be somebody else's."""
    found = [
        who(Claim(OPEN, [(b"x-me", name)]), user_headers=["x-me"])
        for name in (b"j\xf6rg", b"j\xe4rg", "jörg".encode())
    ]
    assert found == [Absent("bad_user"), Absent("bad_user"), Principal("default", "jörg")]


def test_a_body_names_its_user_to_the_letter() -> None:
    """Blanks at the ends are nothing; other white space is part of a name that is none."""
    assert who(Claim(OPEN, [], body={"user": " ali\n"})) == Principal("default", "ali")
    assert who(Claim(OPEN, [], body={"user": "ali\u00a0"})) == Absent("bad_user")


@pytest.mark.parametrize("name", ["..", "a\x00b", "x" * 300])
def test_names_that_are_none(name: str) -> None:
    """Dots, control characters and very long names are refused."""
    assert who(Claim(OPEN, [], name)) == Absent("bad_user")


def test_applications_apart() -> None:
    """With scope user+app each application has a memory of its own."""
    assert who(Claim(OPEN, [], "ali", "mail"), scope="user+app") == Principal(
        "default", "ali", "app:mail"
    )
    assert who(Claim(OPEN, [], "ali"), scope="user+app") == Absent("no_app")


def test_the_open_door_is_parted_by_the_upstreams_key() -> None:
    """Who holds another key of the provider is another tenant; its name does not tell the key."""
    one = tenant_of(OPEN, [(b"Authorization", b"Bearer sk-one")])
    two = tenant_of(OPEN, [(b"authorization", b"Bearer sk-two")])
    assert one != two
    assert "sk-" not in one
    assert tenant_of(KEYED, [(b"authorization", b"Bearer sk-one")]) == "acme"


def test_projects_apart() -> None:
    """With scope user+project each project has a memory of its own."""
    claim = Claim(OPEN, [], "ali", project="usher")
    assert who(claim, scope="user+project") == Principal("default", "ali", "project:usher")
    assert who(Claim(OPEN, [], "ali", "mail"), scope="user+project") == Absent("no_project")


@pytest.mark.item("memory/key-rotation")
def test_a_new_key_of_a_tenant_is_the_same_tenant() -> None:
    """Rotating a gateway key orphans nobody's memories."""
    old, new = Caller(tenant="acme", key="k1"), Caller(tenant="acme", key="k2")
    assert who(Claim(old, [], "ali")) == who(Claim(new, [], "ali"))
