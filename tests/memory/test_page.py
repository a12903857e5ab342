"""A person's page, and the links that open it."""

import pytest

from proxy.memory.change import Memory, Person, Snapshot
from proxy.memory.page import Signer, render_page
from proxy.memory.principal import Principal

ALI = Principal("t", "ali", "app:x")
SIGNER = Signer(b"a secret of some length")


def test_a_link_opens_its_own_page_only() -> None:
    """For so long; nobody without the secret makes one, or makes another of it."""
    token = SIGNER.sign(ALI, 1_000.0)
    assert SIGNER.read(token, 999.0) == ALI
    assert SIGNER.read(token, 1_000.0) is None
    assert Signer(b"another secret here").read(token, 0.0) is None
    forged = token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")
    assert SIGNER.read(forged, 0.0) is None


@pytest.mark.parametrize("token", ["", "x", "é", "=" * 40, "A" * 43, "%%%"])
def test_what_is_no_link(token: str) -> None:
    """Anything else opens nothing."""
    assert SIGNER.read(token, 0.0) is None


def test_stored_text_stays_text() -> None:
    """No value and no key can put anything into the page."""
    value = "<script>alert(1)</script>\"'&"
    memory = Memory("city", value, 1, 1, 0.0, 0.0)
    page = render_page(Snapshot(Person(), [memory]), '"><b>')
    assert "<script>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page


def test_the_switches_say_what_they_do() -> None:
    """Off becomes on; without memories there is nothing to delete one by one."""
    page = render_page(Snapshot(Person(enabled=False), []), "t")
    assert "Switch memory on" in page
    assert "Nothing is remembered" in page
    assert "Remember nothing new" not in page
