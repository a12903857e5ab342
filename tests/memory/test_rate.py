"""Runs a minute."""

from proxy.memory.principal import Principal
from proxy.memory.rate import Rate


def test_each_person_has_their_own() -> None:
    """Two a minute for each; a minute later again."""
    now = [0.0]
    rate = Rate(2, lambda: now[0])
    ali, eva = Principal("t", "ali"), Principal("t", "eva")
    assert [rate.allow(ali) for _ in range(3)] == [True, True, False]
    assert rate.allow(eva)
    now[0] = 60.0
    assert rate.allow(ali)
