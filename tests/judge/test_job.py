"""What a backend is handed."""

from proxy.judge.questions import Choice, Noul, Question
from tests.judge.fakes import make_job

TOOL = Choice("Which?", {"a": None, "b": None})


def test_option_order_depends_on_question_and_state_only() -> None:
    """Not on its name, and not on what else is asked in the same request."""
    alone = make_job("state", {"tool": TOOL}).seed("tool")
    questions: dict[str, Question] = {"other": Noul("?"), "renamed": TOOL}
    assert make_job("state", questions).seed("renamed") == alone
    assert make_job("another state", {"tool": TOOL}).seed("tool") != alone
    assert make_job("state", {"tool": Noul("?")}).seed("tool") != alone
