"""Ledger lines in, database tuples out that no database refuses."""

from collections.abc import Iterator, Sequence
from itertools import count, repeat
from typing import TypeAlias

import msgspec
import orjson

from proxy.ledger.usage import Row, TurnRow
from proxy.wire import JSONObject

Value: TypeAlias = str | int | float | bool | None
Encoded: TypeAlias = tuple[Value, ...]

_LONGEST = 256
_DAY_SECONDS = 86_400


class Numbered:
    """Lines of one writer whose numbers follow each other, encoded whenever they are asked for.

    Tuples of a whole batch, kept until it is written, would set the garbage collector going.
    """

    def __init__(self, lines: Sequence[Row] | Sequence[TurnRow], writer: int, first: int) -> None:
        self._lines = lines
        self._writer = writer
        self._first = first

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Encoded]:
        return map(encode, self._lines, repeat(self._writer), count(self._first))


def encode(line: Row | TurnRow, writer: int, number: int) -> Encoded:
    """A line as its table has it: writer, number, day, then the fields in their order.

    Names come from clients and providers, so they may be long, hold NUL, or not be UTF-8.
    """
    values = msgspec.structs.astuple(line)
    text = _call_text(line) if isinstance(line, Row) else _turn_text(line)
    if len(text) > _LONGEST or not text.isascii() or "\0" in text:
        values = tuple([_clean(value) if isinstance(value, str) else value for value in values])
    head = (writer, number, int(line.started_at // _DAY_SECONDS))
    if line.detail is None:
        return head + values
    return (*head, *values[:-1], _encode_detail(line.detail))


def _call_text(row: Row) -> str:
    """All names of a call in a row: twice as fast as asking each value what it is."""
    return (
        f"{row.request_id}{row.tenant}{row.key}{row.user}{row.context}{row.provider}{row.model}"
        f"{row.answered_model}{row.cost_source}{row.outcome}{row.service_tier}"
    )


def _turn_text(turn: TurnRow) -> str:
    return f"{turn.request_id}{turn.tenant}{turn.key}{turn.user}{turn.model}{turn.outcome}"


def _clean(text: str) -> str:
    short = text[:_LONGEST].replace("\0", "\ufffd")
    return short.encode("utf-8", "replace").decode("utf-8")


def _encode_detail(detail: JSONObject) -> str | None:
    try:
        return orjson.dumps(detail).decode()
    except orjson.JSONEncodeError:
        return None
