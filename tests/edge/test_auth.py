"""The door: who may enter."""

import pytest

from proxy.edge.auth import Door
from proxy.edge.head import Head
from proxy.errors import BadRequest, Unauthorized
from proxy.plan.identity import ANONYMOUS, Caller
from tests.edge.driver import KeyBook

ALICE = Caller(tenant="acme", key="alice", used_gateway_key=True)
DOOR = Door(KeyBook({"s3cret": ALICE}))


def test_without_keys_everybody_enters() -> None:
    """A gateway without keys is open, and the caller's credential stays the upstream's."""
    caller = Door().admit(Head("r", secret="sk-theirs", credential=b"authorization"))
    assert caller == ANONYMOUS
    assert not caller.used_gateway_key


def test_holder_of_a_key_is_named() -> None:
    """A gateway key names its holder and is marked as ours."""
    assert DOOR.admit(Head("r", secret="s3cret", credential=b"api-key")) == ALICE


def test_key_in_our_own_header_leaves_authorization_alone() -> None:
    """With the key in its own header the Authorization is the upstream's."""
    caller = DOOR.admit(Head("r", secret="s3cret", credential=b"x-usher-key"))
    assert caller.key == "alice"
    assert not caller.used_gateway_key


@pytest.mark.parametrize("secret", [None, "wrong"])
def test_others_stay_outside(secret: str | None) -> None:
    """No key and a wrong key are refused, without repeating the key."""
    with pytest.raises(Unauthorized) as refusal:
        DOOR.admit(Head("r", secret=secret, credential=b"authorization"))
    assert "wrong" not in refusal.value.message


@pytest.mark.parametrize("door", [Door(), DOOR])
def test_doubled_credential_is_refused(door: Door) -> None:
    """Nobody guesses which of two credentials counts."""
    with pytest.raises(BadRequest, match="more than one authorization"):
        door.admit(
            Head("r", secret="s3cret", credential=b"authorization", doubled=b"authorization")
        )
