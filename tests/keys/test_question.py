"""What the script is told about a key: once, and in numbers that its language can hold."""

import msgspec

from proxy.keys.budget import month_of
from proxy.keys.question import LEASE_SECONDS, Batch, Wish


def test_nothing_used_is_no_batch() -> None:
    """Places that are given back may be said twice, so they need no id that is remembered."""
    batch = Batch()
    batch.left.append(("a1", 10))
    question = msgspec.to_builtins(batch.question())
    assert question == {
        "ttl": LEASE_SECONDS,
        "batch": "",
        "left": [("a1", 10)],
        "running": [],
        "tokens": 0,
        "costs": [],
    }


def test_what_was_used_is_said_under_an_id() -> None:
    """Each batch has its own; money is text, because Lua's numbers lose digits."""
    batch, other = Batch(), Batch()
    batch.tokens, batch.costs = 7, {20_000: 10**16 + 1}
    question = batch.question()
    assert question.batch == batch.id != other.id
    assert question.costs == [(20_000, month_of(20_000), "10000000000000001")]


def test_limits_that_are_not_there_are_not_sent() -> None:
    """A null would be true in Lua."""
    assert set(msgspec.to_builtins(Wish(("a1", 0), 1, 2, rpm=3))) == {
        "lease",
        "day",
        "month",
        "rpm",
    }
