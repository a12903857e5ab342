"""The facts of a turn."""

from tests.upstream.desks import make_desk


def test_a_brief_is_plain_unless_told_otherwise() -> None:
    """Text streams live and calls may be parallel, as OpenAI's defaults are."""
    brief = make_desk().brief
    assert not brief.hold_text
    assert not brief.sequential
