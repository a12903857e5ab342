"""Who asks is known by value."""

from proxy.plan.identity import ANONYMOUS, Caller


def test_the_open_door_lets_in_one_tenant() -> None:
    """Without keys everybody is the same caller and nobody is an administrator."""
    assert Caller() == ANONYMOUS
    assert not ANONYMOUS.admin
    assert not ANONYMOUS.used_gateway_key
