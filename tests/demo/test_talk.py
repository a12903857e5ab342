"""The story's messages."""

from proxy.demo.talk import CONVERSATIONS, TURNS, hold_talks


def test_the_numbers_of_the_story() -> None:
    """120 conversations, 713 user turns, the same every time."""
    talks = list(hold_talks())
    assert (len(talks), sum(map(len, talks))) == (CONVERSATIONS, TURNS) == (120, 713)
    assert talks == list(hold_talks())
