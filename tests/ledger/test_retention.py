"""What is deleted: by age and by number."""

import pytest

from proxy.ledger.retention import delete_old


@pytest.mark.parametrize(("keep", "statements"), [(None, 2), (100, 4)])
def test_both_tables_by_each_rule(keep: int | None, statements: int) -> None:
    """Turns before calls, because calls are what is counted."""
    found = delete_old(1.5, keep)
    assert len(found) == statements
    assert found[0] == "DELETE FROM usher_turns WHERE started_at < 1.5"
    assert found[-1].startswith("DELETE FROM usher_calls")
    assert ("OFFSET 100" in found[-1]) == (keep is not None)
