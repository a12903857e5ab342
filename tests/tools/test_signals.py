"""Every hint can be switched off."""

from dataclasses import fields

from proxy.tools.signals import NEUTRAL, Signals


def test_each_signal_has_an_off() -> None:
    """No default equals its neutral value, so that an ablation measures something."""
    names = [field.name for field in fields(Signals)]
    assert all(getattr(NEUTRAL, name) != getattr(Signals(), name) for name in names)
