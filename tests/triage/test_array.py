"""Items of an array where they stand in its bytes."""

import orjson
import pytest

from proxy.triage.array import Array, find_anchor, measure_gap, place_items, read_front, read_items

MESSAGES = [{"role": "system"}, {"role": "user"}, {"role": "assistant"}, {"role": "user", "x": 1}]


def _array(raw: bytes) -> Array:
    view = memoryview(raw)
    anchor = find_anchor(view)
    front = read_front(view, anchor)
    items = read_items(b"[" + raw[anchor:])
    assert front is not None
    assert items is not None
    gap = measure_gap(view, anchor, items)
    starts = place_items(view, anchor, items, gap)
    assert starts is not None
    return Array(view, front, anchor, gap, starts)


@pytest.mark.parametrize("gap", [b",", b", ", b" ,\n\t"])
def test_items_are_slices(gap: bytes) -> None:
    """Of the client's own bytes, whatever is between them."""
    raws = [orjson.dumps(message) for message in MESSAGES]
    array = _array(b"[" + gap.join(raws) + b" ]\n")
    assert len(array) == 4
    assert [bytes(array[at]) for at in range(4)] == raws
    for start in range(4):
        for stop in range(start, 5):
            assert b",".join(array.span(start, stop)) == b",".join(raws[start:stop])


def test_what_is_in_one_piece_is_laid_in_one() -> None:
    """So that a long stretch costs no more than a short one."""
    array = _array(orjson.dumps(MESSAGES))
    assert len(array.span(1, 4)) == 1


def test_how_many_items_so_many_bytes_hold() -> None:
    """Whole ones only."""
    array = _array(orjson.dumps(MESSAGES))
    first = len(orjson.dumps(MESSAGES[1]))
    assert [array.count_within(size) for size in (0, first - 1, first, first + 1, 10_000)] == [
        0, 0, 1, 1, 3,
    ]  # fmt: skip


def test_an_uneven_gap_is_noticed() -> None:
    """Also where the whole length would be right."""
    raw = b'[{"role":"user"} ,{"role":"user"},{"role":"user"}, {"role":"user"}]'
    items = read_items(raw)
    assert items is not None
    assert place_items(memoryview(raw), 1, items, b" ,") is None
    assert place_items(memoryview(raw), 1, items, measure_gap(memoryview(raw), 1, items)) is None


@pytest.mark.parametrize("raw", [b"[[", b'{"a":1}', b"1"])
def test_what_is_no_array_has_no_items(raw: bytes) -> None:
    """It is left to others."""
    assert read_items(raw) is None


def test_an_anchor_is_the_beginning_of_an_item() -> None:
    """Not of something inside one."""
    raw = memoryview(b'[{"role":"system","of":{"role":"user"}},{"role":"user"}]')
    assert read_front(raw, find_anchor(raw)) is None
    assert find_anchor(memoryview(b'[{"content":"x","role":"user"}]')) == -1
