"""The last gate decides when the client gets something at all."""

from proxy.stream.outlet import Outlet


def test_nothing_goes_out_before_there_is_something_to_see() -> None:
    """A role waits for the first text; then everything passes."""
    outlet = Outlet(hold_text=False)
    assert (outlet.send(b"role", "", shows=False), outlet.started) == (b"", False)
    assert (outlet.send(b"text", "a", shows=True), outlet.started) == (b"roletext", True)
    assert outlet.send(b"empty", "", shows=False) == b"empty"


def test_held_text_goes_out_in_order_once_its_round_is_visible() -> None:
    """Reasoning does not wait."""
    outlet = Outlet(hold_text=True)
    assert outlet.send(b"1", "a", shows=True) == b""
    assert outlet.send(b"thought", "", shows=True) == b"thought"
    assert outlet.send(b"2", "b", shows=True) == b""
    assert outlet.open() == b"12"
    assert outlet.send(b"3", "c", shows=True) == b"3"
    assert outlet.text == "abc"


def test_held_text_of_a_hidden_round_is_forgotten() -> None:
    """The next round holds again."""
    outlet = Outlet(hold_text=True)
    outlet.send(b"1", "a", shows=True)
    outlet.start_round()
    assert outlet.send(b"2", "b", shows=True) == b""
    assert outlet.open() == b"2"
    assert outlet.text == "b"
    outlet.start_round()
    assert outlet.send(b"3", "c", shows=True) == b""


def test_a_gap_is_wanted_after_text_that_ends_in_a_word() -> None:
    """Not at the start, and not after whitespace."""
    outlet = Outlet(hold_text=False)
    gaps = [outlet.gap]
    for text in ("a", "b\n", ""):
        outlet.start_round()
        gaps.append(outlet.gap)
        outlet.send(b"x", text, shows=True)
    assert gaps == [False, False, True, False]
