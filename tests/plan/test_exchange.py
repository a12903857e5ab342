"""The seam between the edge and a turn."""

from proxy.plan.exchange import Reply


def test_a_reply_is_not_ours_to_ping_by_default() -> None:
    """Forwarded bytes get no keep-alive lines."""
    assert not Reply(200, [], b"").pings
