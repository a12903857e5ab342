"""Event streams are cut into events, whatever the chunks, line ends and oddities."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.errors import UpstreamError
from proxy.stream.sse import DONE, PING, Frame, Splitter, encode, tidy


def split(*chunks: bytes) -> list[Frame]:
    splitter = Splitter()
    return [frame for chunk in chunks for frame in splitter.feed(chunk)] + splitter.finish()


def data_of(*chunks: bytes) -> list[bytes | None]:
    return [frame.data for frame in split(*chunks)]


@pytest.mark.item("stream/crlf")
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_each_line_end_closes_lines_and_events(end: bytes) -> None:
    """LF, CRLF and CR all work, and the event keeps its own bytes."""
    wire = end.join([b"event: message", b"data: a", b"data: b", b"", b"data: c", b"", b""])
    frames = split(wire)
    assert [frame.data for frame in frames] == [b"a\nb", b"c"]
    assert [frame.event for frame in frames] == [b"message", None]
    assert b"".join([frame.raw for frame in frames]) == wire


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_is_there_as_soon_as_its_blank_line_is(end: bytes) -> None:
    """No event waits for the next one, unless a CR may still become a CRLF."""
    splitter = Splitter()
    assert splitter.feed(b"data: a" + end) == []
    assert [frame.data for frame in splitter.feed(end)] == [b"a"]


def test_a_delimiter_may_be_cut_between_cr_and_lf() -> None:
    """The second half neither closes another event nor gets lost."""
    assert data_of(b"data: a\r", b"\n\r", b"\ndata: b\r\n\r\n") == [b"a", b"b"]


@pytest.mark.item("stream/multi-line-data")
@pytest.mark.parametrize(
    ("wire", "data"),
    [
        (b"data:x\n\n", b"x"),
        (b"data: x\n\n", b"x"),
        (b"data:  x\n\n", b" x"),
        (b"data\n\n", b""),
        (b"data:\n\n", b""),
        (b"data: x\ndata:\ndata: y\n\n", b"x\n\ny"),
        (b": note\ndata: x\n\n", b"x"),
        (b"id: 7\nretry: 5\ndata: x\n\n", b"x"),
        (b"database: x\n\n", None),
        (b"\xef\xbb\xbfdata: x\n\n", b"x"),
        (b": ping\n\n", None),
        (b"event: ping\n\n", None),
        (b"\n", None),
    ],
)
def test_fields_are_read_as_the_standard_says(wire: bytes, data: bytes | None) -> None:
    """One space after the colon is optional, data lines are joined, other fields are no data."""
    (frame,) = split(wire)
    assert (frame.raw, frame.data) == (wire, data)


@pytest.mark.item("stream/split-utf8")
def test_text_is_cut_between_the_bytes_of_a_character() -> None:
    """Nothing is decoded, so nothing breaks."""
    word = "渐🌍".encode()
    wire = encode(word)
    assert data_of(*[wire[i : i + 1] for i in range(len(wire))]) == [word]


def test_the_end_of_a_stream_brings_an_unterminated_event() -> None:
    """A server that closes without the last blank line is still heard."""
    assert data_of(b"data: a\n\ndata: b") == [b"a", b"b"]
    assert data_of(b"data: a\r\n\r") == [b"a"]


def test_a_finished_splitter_is_empty() -> None:
    """What was handed out at the end doesn't come twice."""
    splitter = Splitter()
    splitter.feed(b"data: a")
    assert [frame.data for frame in splitter.finish()] == [b"a"]
    assert splitter.finish() == []


_LINES = st.sampled_from(
    [
        *(
            b"data: a",
            b"data:b",
            b"data: " + "ü".encode(),
            b"data: c\xf0\x9f",
            b": note",
            b"event: e",
        ),
        *(b"id: 1", b"retry: 2", b"", b"", b"", b"x" * 40),
    ]
)
_STREAMS = st.tuples(
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(st.tuples(_LINES, st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"]))),
).map(lambda wire: wire[0] + b"".join([line + end for line, end in wire[1]]))


@settings(deadline=None)
@given(_STREAMS, st.lists(st.integers(0, 400)))
def test_chunks_make_no_difference(wire: bytes, cuts: list[int]) -> None:
    """Any cutting of any stream gives the same events, which together are the stream."""
    edges = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    chunks = [wire[a:b] for a, b in pairwise(edges)]
    frames = split(*chunks)
    assert frames == split(wire) == split(*[wire[i : i + 1] for i in range(len(wire))])
    assert b"".join([frame.raw for frame in frames]) == wire


@settings(deadline=None)
@given(_STREAMS)
def test_events_are_those_of_the_standard(wire: bytes) -> None:
    """The data agree with a line-by-line reading of the whole stream."""
    expected: list[bytes] = []
    lines: list[bytes] = []
    for line in re.split(rb"\r\n|\r|\n", wire.removeprefix(b"\xef\xbb\xbf") + b"\n\n"):
        name, _, value = line.partition(b":")
        if not line and lines:
            expected.append(b"\n".join(lines))
            lines = []
        elif name == b"data":
            lines.append(value.removeprefix(b" "))
    assert [data for data in data_of(wire) if data is not None] == expected


@pytest.mark.parametrize("size", [16 * 1024, 64])
def test_an_enormous_line_takes_linear_time(size: int) -> None:
    """An event of many chunks is neither searched nor copied again for each of them."""
    line = b"data: " + b"x" * (64 * 1024 * 1024 if size > 100 else 4 * 1024 * 1024)
    start = time.process_time()
    frames = split(*[line[i : i + size] for i in range(0, len(line), size)], b"\n\n")
    assert frames[0].data == line[6:]
    assert time.process_time() - start < 5


def test_many_short_lines_of_one_event_take_linear_time() -> None:
    """Line ends inside an event don't make each chunk join all that came before."""
    lines = [b"data: %d\n" % number for number in range(100_000)]
    start = time.process_time()
    (frame,) = split(*lines, b"\n")
    assert frame.data is not None
    assert frame.data.count(b"\n") == 99_999
    assert time.process_time() - start < 5


def test_an_event_without_end_is_refused() -> None:
    """A broken upstream cannot fill the memory."""
    splitter = Splitter(largest=10)
    for _ in range(9):
        splitter.feed(b"\n\ndata: ")
    with pytest.raises(UpstreamError, match="more than 10 bytes"):
        splitter.feed(b"data: 0123456789")


@pytest.mark.item("stream/comments", "stream/byte-order-mark")
@pytest.mark.parametrize(
    ("wire", "clean"),
    [
        (b"data: x\n\n", b"data: x\n\n"),
        (b"data:x\n\n", b"data:x\n\n"),
        (b"data: x\r\n\r\n", b"data: x\r\n\r\n"),
        (b"data: x\r\r", b"data: x\r\r"),
        (b"event: error\ndata: x\n\n", b"event: error\ndata: x\n\n"),
        (b"id: 1\ndata: x\n\n", b"data: x\n\n"),
        (b"id\ndata: x\n\n", b"data: x\n\n"),
        (b"data: x\r\nretry: 9\r\n\r\n", b"data: x\n\n"),
        (b": note\ndata: x\n\n", b"data: x\n\n"),
        (b"\xef\xbb\xbfdata: x\n\n", b"data: x\n\n"),
        (b": note\ndata: x\n", b"data: x\n\n"),
        (b"data: x", b"data: x\n\n"),
        (b"data: x\n", b"data: x\n\n"),
        (b"data: x\r\n", b"data: x\n\n"),
        (b"data: x\ndata: y\n", b"data: x\ndata: y\n\n"),
    ],
)
def test_tidy_leaves_data_and_event_lines(wire: bytes, clean: bytes) -> None:
    """What crashes SDKs goes, a missing end is added, all else keeps its bytes."""
    (frame,) = split(wire)
    assert tidy(frame) == clean


def test_the_constants_are_what_clients_expect() -> None:
    """The end of a stream is an event; a keep-alive is a line that closes nothing."""
    assert data_of(DONE) == [b"[DONE]"]
    assert data_of(b"data: a\n", PING, b"\n") == [b"a"]
