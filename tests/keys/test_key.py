"""A key is recognised by its secret, and the secret is nowhere in it."""

import msgspec
import pytest

from proxy.keys.key import GatewayKey, KeyPolicy, Limits, hash_secret, new_secret, read_id


def test_a_secret_proves_itself_and_no_other() -> None:
    """One letter off is nobody's."""
    secret, proof = new_secret()
    assert proof.matches(secret, 0.0)
    assert not proof.matches(secret[:-1] + "!", 0.0)
    assert not proof.matches("", 0.0)


def test_secrets_are_long_random_and_look_like_keys() -> None:
    """Clients check for `sk-`; 43 letters of 62 are 256 bits."""
    secrets = {new_secret()[0] for _ in range(100)}
    assert len(secrets) == 100
    assert all(secret.startswith("sk-usher-") and len(secret) == 61 for secret in secrets)


def test_an_old_secret_ends() -> None:
    """After a rotation the old one works until its time."""
    secret, proof = new_secret()
    old = msgspec.structs.replace(proof, until=100.0)
    assert old.matches(secret, 99.9)
    assert not old.matches(secret, 100.0)


@pytest.mark.parametrize(
    "text", ["", "sk-", "sk-usher-", "sk-usher-abc", "sk-usher--x", "sk-é-x-y"]
)
def test_what_is_no_secret_has_no_id(text: str) -> None:
    """Keys of providers come by all the time."""
    assert read_id(text) is None


def test_the_id_is_in_the_secret() -> None:
    """So that finding the key needs no comparison with every hash."""
    secret, proof = new_secret()
    assert read_id(secret) == proof.id
    assert read_id("sk-usher-a-b-c") == "a"


def test_a_key_holds_no_secret() -> None:
    """What is written down cannot be used to get in."""
    secret, proof = new_secret()
    written = msgspec.json.encode(GatewayKey("alice", proof, 0.0)).decode()
    assert secret not in written
    assert secret.rpartition("-")[2] not in written
    assert hash_secret(secret) in written


def test_models() -> None:
    """Names and globs; none at all means every model."""
    _, proof = new_secret()
    assert GatewayKey("a", proof, 0.0).allows("anything")
    key = GatewayKey("a", proof, 0.0, models=("gpt-4o", "claude-*"))
    assert [key.allows(name) for name in ("gpt-4o", "gpt-4o-mini", "claude-x", "")] == [
        True, False, True, False,
    ]  # fmt: skip


def test_defaults() -> None:
    """A key without wishes may do what everybody may."""
    _, proof = new_secret()
    key = GatewayKey("a", proof, 0.0)
    assert (key.limits, key.policy, key.admin, key.trust_user) == (
        Limits(), KeyPolicy(), False, False,
    )  # fmt: skip


def test_whose_request_it_is() -> None:
    """A bound key is nobody else's; a name counts only when the key is trusted with it."""
    _, proof = new_secret()
    assert GatewayKey("a", proof, 0.0, user="u1", trust_user=True).speaks_for("u2") == "u1"
    assert GatewayKey("a", proof, 0.0, trust_user=True).speaks_for("u2") == "u2"
    assert GatewayKey("a", proof, 0.0).speaks_for("u2") is None


def test_fixed_wishes() -> None:
    """Only what is fixed."""
    assert KeyPolicy(memory="off", defer="all").wishes() == {"memory": "off", "defer": "all"}
    assert KeyPolicy().wishes() == {}
