"""The usage chunk that we asked for does not reach a client that did not."""

from collections.abc import AsyncGenerator

import pytest

from proxy.triage.hide import hide_usage

pytestmark = pytest.mark.anyio
TEXT = b'data: {"choices":[{"delta":{"content":"\\"usage\\" is a word"}}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":5}}\n\n'
FILTER = b'data: {"choices":[],"prompt_filter_results":[1]}\n\n'
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize("size", [1, 13, 1000])
async def test_only_the_usage_chunk_is_missing(size: int) -> None:
    """Every other frame keeps its bytes, an unfinished last one too."""
    body = FILTER + TEXT + USAGE + DONE + b": bye"

    async def play() -> AsyncGenerator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    out = b"".join([chunk async for chunk in hide_usage(play())])
    assert out == FILTER + TEXT + DONE + b": bye"


async def test_a_chunk_with_words_and_usage_stays() -> None:
    """Some providers state usage beside the last words."""
    body = b'data: {"choices":[{"delta":{}}],"usage":{"prompt_tokens":5}}\n\n'

    async def play() -> AsyncGenerator[bytes]:
        yield body
        yield b'data: "usage" "choices"\n\n'

    assert await anext(hide_usage(play())) == body
