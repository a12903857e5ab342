"""Texts come in on standard input; their lengths in o200k_base tokens go out: a process of its own.

To load the vocabulary takes half a second in which the interpreter does nothing else, and 80 MB;
in a process of its own that stops nobody, and ends when nothing was counted for a while.

Both ways frames of little-endian numbers of 32 bits: their count, then the lengths in bytes that
the texts behind them have; their count, then the tokens. A count of 0xFFFFFFFF says that there is
no vocabulary. Started as a script by `proxy.tools.counter`, so nothing of Usher is imported here.
"""

import os
import select
import struct
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    import tiktoken

IDLE_SECONDS = 60.0
STAY = "--stay"
"""The argument that keeps the process until its questions end, however long they take to come."""
NO_VOCABULARY = 0xFFFFFFFF


def load_o200k() -> "tiktoken.Encoding | None":
    """The vocabulary from litellm's wheel, without importing litellm; None when there is none."""
    import tiktoken  # noqa: PLC0415  # only where something is counted

    folder = _bundled()
    if folder is not None:
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))
    try:
        return tiktoken.get_encoding("o200k_base")
    except OSError:
        return None


def write_texts(texts: list[bytes]) -> bytes:
    """The frame of a question."""
    lengths = struct.pack(f"<{len(texts) + 1}I", len(texts), *map(len, texts))
    return lengths + b"".join(texts)


def read_numbers(source: BinaryIO, count: int) -> tuple[int, ...] | None:
    """So many numbers; None at the end of the stream."""
    raw = source.read(4 * count)
    return struct.unpack(f"<{count}I", raw) if len(raw) == 4 * count else None


def answer(source: BinaryIO, sink: BinaryIO, encoding: "tiktoken.Encoding | None") -> bool:
    """Answer one question; False when there are no more."""
    asked = read_numbers(source, 1)
    lengths = read_numbers(source, asked[0]) if asked is not None else None
    if lengths is None:
        return False
    texts = [source.read(length).decode(errors="replace") for length in lengths]
    if encoding is None:
        sink.write(struct.pack("<I", NO_VOCABULARY))
    else:
        counts = [len(encoding.encode_ordinary(text)) for text in texts]
        sink.write(struct.pack(f"<{len(counts) + 1}I", len(counts), *counts))
    sink.flush()
    return True


def _bundled() -> Path | None:
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    return folder if folder.is_dir() else None


def _serve() -> None:
    encoding = load_o200k()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    patience = None if STAY in sys.argv[1:] else IDLE_SECONDS
    while select.select([source], [], [], patience)[0] and answer(source, sink, encoding):
        pass


if __name__ == "__main__":
    _serve()
