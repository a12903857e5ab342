"""What a function behind the edge is asked: values that nobody can change."""

import pytest

from proxy.edge.asked import Asked
from proxy.plan.identity import ANONYMOUS


def test_question_cannot_be_changed() -> None:
    """A function cannot alter the request that others may look at, too."""
    asked = Asked("GET", "/x", "", {}, [], b"", ANONYMOUS, "req_1")
    with pytest.raises(AttributeError):
        asked.body = b"changed"  # type: ignore[misc]  # that is what must not work
