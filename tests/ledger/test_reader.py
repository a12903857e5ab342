"""What was written can be asked for, with the same answers from both kinds of database."""

from collections.abc import AsyncIterator
from typing import get_args

import orjson
import pytest

from proxy.errors import Unavailable
from proxy.ledger.database import Database, open_database
from proxy.ledger.encode import encode
from proxy.ledger.reader import Reader
from proxy.ledger.retention import delete_old
from proxy.ledger.store import Dimension, UsageQuery
from proxy.ledger.usage import Row, TurnRow
from tests.fakes.lines import NOON, row, turn

pytestmark = pytest.mark.anyio

DAY = 86_400
CALLS = [
    row(cost_nano_usd=2000, cost_source="table"),
    row(context="search_round", round=2, prompt_tokens=3000, cached_tokens=None),
    row(context="classification", prompt_tokens=None, estimated=True, started_at=NOON + 1),
    row(request_id="req_2", key="bob", cost_nano_usd=500, started_at=NOON + DAY),
    row(request_id="req_3", tenant="other", prompt_tokens=7),
]  # fmt: skip
TURNS = [
    turn(detail={"plan": {"predicted": ["a"]}, "memory": {"verdict": "skip"}}),
    turn(request_id="req_2", key="bob", started_at=NOON + DAY, hits=None),
    turn(request_id="req_3", tenant="other", tokens_avoided=None),
]


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    opened = await open_database(url)
    lines: list[Row] = CALLS
    whole: list[TurnRow] = TURNS
    await opened.write(
        [encode(line, 7, number) for number, line in enumerate(lines)],
        [encode(line, 7, number) for number, line in enumerate(whole)],
    )
    yield opened
    await opened.aclose()


async def test_usage_by_context(database: Database) -> None:
    """Both sets of books; sums skip what is unknown and say how often that was."""
    search, main, judge = await Reader(database.read).usage(UsageQuery(("context",), "acme"))
    assert (search["context"], main["context"]) == ("search_round", "main")
    assert (search["prompt_tokens"], search["cached_tokens"]) == (3000, None)
    assert (main["prompt_tokens"], main["cached_tokens"]) == (2000, 800)
    assert (main["cost_nano_usd"], search["cost_nano_usd"]) == (2500, None)
    assert (search["calls_without_cost"], main["calls_without_cost"]) == (1, 0)
    assert judge["prompt_tokens"] is None
    assert (judge["calls_without_tokens"], judge["calls_estimated"]) == (1, 1)


async def test_usage_by_everything(database: Database) -> None:
    """All dimensions at once."""
    rows = await Reader(database.read).usage(UsageQuery(get_args(Dimension)))
    assert len(orjson.loads(orjson.dumps(rows))) == 5
    assert {found["day"] for found in rows} == {"2027-01-15", "2027-01-16"}


async def test_usage_without_groups_and_without_rows(database: Database) -> None:
    """One total, and nothing at all for a tenant that never asked."""
    assert [r["calls"] for r in await Reader(database.read).usage(UsageQuery(()))] == [5]
    assert await Reader(database.read).usage(UsageQuery((), "nobody")) == []
    assert await Reader(database.read).savings(UsageQuery((), "nobody")) == []


async def test_usage_since(database: Database) -> None:
    """Only the newer day."""
    rows = await Reader(database.read).usage(UsageQuery(("key",), "acme", NOON + DAY))
    assert [found["key"] for found in rows] == ["bob"]


async def test_savings(database: Database) -> None:
    """Predictions by how they turned out, tools by what became of them."""
    (acme,) = await Reader(database.read).savings(UsageQuery((), "acme"))
    assert orjson.dumps(acme)
    assert (acme["turns"], acme["deferred"], acme["hits"], acme["unused"]) == (2, 464, 1, 6)
    assert (acme["tokens_avoided_estimate"], acme["turns_without_estimate"]) == (220_000, 0)
    (other,) = await Reader(database.read).savings(UsageQuery((), "other"))
    assert (other["tokens_avoided_estimate"], other["turns_without_estimate"]) == (None, 1)


async def test_newest_requests_first(database: Database) -> None:
    """The list goes back in time, page by page, within the tenant."""
    reader = Reader(database.read)
    assert [found["id"] for found in await reader.requests("acme")] == ["req_2", "req_1"]
    assert [f["id"] for f in await reader.requests("acme", 50, NOON + DAY)] == ["req_1"]
    assert [f["id"] for f in await reader.requests("acme", 1)] == ["req_2"]


async def test_one_turn_as_a_timeline(database: Database) -> None:
    """The turn, its plan and its calls in the order they happened."""
    found = await Reader(database.read).timeline("req_1", "acme")
    assert found is not None
    assert found["tools"] == {"kept": 3, "deferred": 232, "predicted": 4, "discovered": 1}
    assert found["plan"] == {"predicted": ["a"]}
    assert found["memory"] == {"verdict": "skip"}
    contexts = [call["context"] for call in found["calls"]]
    assert contexts == ["main", "search_round", "classification"]
    assert found["calls"][2]["prompt_tokens"] is None
    assert await Reader(database.read).timeline("req_1", "other") is None
    assert await Reader(database.read).timeline("req_9", None) is None


async def test_a_turn_that_has_not_ended(database: Database) -> None:
    """Its calls so far are shown."""
    await database.write([encode(row(request_id="req_4"), 8, 1)], [])
    found = await Reader(database.read).timeline("req_4", "acme")
    assert found is not None
    assert (found["outcome"], found["model"], len(found["calls"])) == ("unfinished", "gpt-4o", 1)


async def test_a_request_that_passed_through(database: Database) -> None:
    """An embedding is one call without a turn; its outcome is the call's."""
    passed = row(request_id="req_5", tools_sent=None, tools_deferred=None, outcome="http_400")
    await database.write([encode(passed, 8, 1)], [])
    found = await Reader(database.read).timeline("req_5", "acme")
    assert found is not None
    assert found["outcome"] == "http_400"


async def test_spent_per_key_and_day(database: Database) -> None:
    """What budgets take over at a restart; unknown costs are not in it."""
    assert sorted(await Reader(database.read).spent(NOON - 1)) == [
        ("alice", 20833, 2000),
        ("bob", 20834, 500),
    ]


async def test_old_lines_leave(database: Database) -> None:
    """By age: the first day goes, the second stays."""
    await database.delete(delete_old(NOON + DAY, None))
    assert [found["id"] for found in await Reader(database.read).requests(None)] == ["req_2"]


async def test_the_oldest_lines_beyond_a_number_leave(database: Database) -> None:
    """By number: the newest call stays, and the turns that are not older."""
    await database.delete(delete_old(0.0, 1))
    (total,) = await Reader(database.read).usage(UsageQuery(()))
    assert total["calls"] == 1
    assert [found["id"] for found in await Reader(database.read).requests(None)] == ["req_2"]


async def test_a_database_that_fails(database: Database) -> None:
    """The one who asks gets a 503 to come back later, without our SQL."""
    await database.delete(["DROP TABLE usher_calls"])
    with pytest.raises(Unavailable, match=r"^The ledger cannot be read now\.$"):
        await Reader(database.read).usage(UsageQuery(()))


async def test_a_turn_is_found_with_its_judgments(database: Database) -> None:
    """Its calls go by the upstream's request id, its judgments by the gateway's own."""
    lines: list[Row] = [
        row(request_id="up_1"),
        row(request_id="req_own", context="classification"),
    ]
    whole: list[TurnRow] = [turn(request_id="up_1", detail={"own_id": "req_own"})]
    await database.write(
        [encode(line, 8, number) for number, line in enumerate(lines)],
        [encode(line, 8, number) for number, line in enumerate(whole)],
    )
    reader = Reader(database.read)
    for known in ("up_1", "req_own"):
        timeline = await reader.timeline(known, None)
        assert timeline is not None
        assert {call["context"] for call in timeline["calls"]} == {"main", "classification"}
        assert (timeline["id"], timeline["own_id"]) == ("up_1", "req_own")
    for other in ("req_ow_", "%", 'req_own" OR 1', "req_%"):
        assert await reader.timeline(other, None) is None
    assert await reader.timeline("req_own", "strangers") is None
