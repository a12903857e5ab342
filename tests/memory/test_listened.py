"""What the memory agent may read of a conversation."""

from proxy.judge.fused import Said
from proxy.judge.heard import Heard as Listened
from proxy.memory.evidence import Heard
from proxy.memory.listened import clean, hear

TALK = [Said("user", "I live in Rome."), Said("tool", "[tool result]"), Said("assistant", "Save?")]


def test_a_short_reply_has_its_antecedent() -> None:
    """The offer and the user's earlier words, without tools."""
    assert hear(Listened("yes", 3, TALK), 5) == Heard("yes", "Save?", ("I live in Rome.",))


def test_a_message_of_its_own_stands_alone() -> None:
    """A long message needs nothing else, and gets nothing else."""
    long = "Remember that I live in Rome, in the old town, near the river. " * 3
    assert hear(Listened(long, 3, TALK), 5) == Heard(long.strip())


def test_the_window() -> None:
    """No more than the operator allows."""
    assert hear(Listened("yes", 3, TALK), 2) == Heard("yes", "Save?")
    assert hear(Listened("yes", 3, TALK), 1) == Heard("yes")


def test_our_own_blocks_are_removed() -> None:
    """Also one that was cut off."""
    assert clean("a <user_memory>x</user_memory> b <memory_service>y") == "a  b"
