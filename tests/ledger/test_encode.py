"""Lines become tuples that fit their table on every database."""

import msgspec
import orjson

from proxy.ledger.encode import Numbered, encode
from proxy.ledger.schema import calls, turns
from proxy.ledger.usage import Row, TurnRow
from tests.fakes.lines import row, turn


def names(table: object) -> list[str]:
    return [column.name for column in table.columns]  # type: ignore[attr-defined]  # any table


def test_fields_are_in_the_order_of_the_columns() -> None:
    """A field that is added in one place only would shift all the others."""
    own = ["writer", "line", "day"]
    assert names(calls) == own + [field.name for field in msgspec.structs.fields(Row)]
    assert names(turns) == own + [field.name for field in msgspec.structs.fields(TurnRow)]


def test_writer_number_and_day_come_first() -> None:
    """The day is counted from 1970 in UTC."""
    assert encode(row(), 7, 3)[:4] == (7, 3, 20833, "req_1")
    assert encode(turn(), 7, 3)[:4] == (7, 3, 20833, "req_1")


def test_names_that_databases_refuse() -> None:
    """Lone surrogates, NUL and endless names come from clients; the rest of the line counts."""
    line = encode(row(model="m\ud800\0", user="ü" * 1000), 7, 3)
    fields = dict(zip(names(calls), line, strict=True))
    assert fields["model"] == "m?\ufffd"
    assert fields["user"] == "ü" * 256
    assert fields["prompt_tokens"] == 1000


def test_detail_is_json_text() -> None:
    """Structured detail is kept as text; what is no JSON is left out."""
    assert encode(row(detail={"p": 0.5}), 7, 3)[-1] == '{"p":0.5}'
    assert encode(row(detail={"p": object()}), 7, 3)[-1] is None
    assert encode(row(detail={"p": "\ud800"}), 7, 3)[-1] is None
    assert encode(row(), 7, 3)[-1] is None
    assert orjson.loads(str(encode(turn(detail={"a": [1]}), 7, 3)[-1])) == {"a": [1]}


def test_numbers_follow_each_other() -> None:
    """The same each time that the lines are gone through: a batch may be written again."""
    lines = Numbered([row(), row(request_id="req_2")], 7, 3)
    assert len(lines) == 2
    for _ in range(2):
        assert list(lines) == [encode(row(), 7, 3), encode(row(request_id="req_2"), 7, 4)]
