"""The counting process's half of the conversation."""

import io
import struct

from proxy.tools.vocabulary import NO_VOCABULARY, answer, load_o200k, read_numbers, write_texts


def test_question_and_answer() -> None:
    """A frame of texts is answered by a frame of numbers, in their order."""
    sink = io.BytesIO()
    source = io.BytesIO(write_texts([b"hello world", b"", b"<|endoftext|>"]))
    assert answer(source, sink, load_o200k())
    count, first, second, third = struct.unpack("<4I", sink.getvalue())
    assert (count, first, second) == (3, 2, 0)
    assert third > 1


def test_without_a_vocabulary_it_says_so() -> None:
    """The question is read to its end, so that the next one can follow."""
    sink = io.BytesIO()
    source = io.BytesIO(write_texts([b"hello"]))
    assert answer(source, sink, None)
    assert struct.unpack("<I", sink.getvalue()) == (NO_VOCABULARY,)
    assert source.read() == b""


def test_end_of_questions() -> None:
    """A closed pipe, also in the middle of a frame's head, ends the process."""
    assert not answer(io.BytesIO(b""), io.BytesIO(), None)
    assert not answer(io.BytesIO(b"\x02\0\0\0\x05"), io.BytesIO(), None)
    assert read_numbers(io.BytesIO(b"\x01\0"), 1) is None
