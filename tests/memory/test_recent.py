"""What is still to be told."""

from proxy.memory.agent import Run
from proxy.memory.principal import Principal
from proxy.memory.recent import MOST_OWED, Recent
from proxy.memory.session import Session

ALI, EVA = Principal("t", "ali"), Principal("t", "eva")


def test_owed_once_and_bounded() -> None:
    """The newest artifacts, to their owner, once."""
    recent = Recent()
    recent.owe(ALI, [{"n": n} for n in range(MOST_OWED + 5)])
    assert recent.collect(EVA) == []
    assert len(recent.collect(ALI)) == MOST_OWED
    assert recent.collect(ALI) == []


def test_a_turn_is_explained_to_its_owner() -> None:
    """By request id; nobody else's id says anything."""
    recent = Recent()
    recent.note(Session("r", ALI, "skip", score=0.1), Run())
    recent.note(Session("x", None), Run())
    told = recent.explain(ALI, "r")
    assert told is not None
    assert told["status"] == "skip"
    assert recent.explain(EVA, "r") is None
