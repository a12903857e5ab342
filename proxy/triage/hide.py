"""A stream whose usage we asked for comes in; the same stream without that chunk goes out."""

from collections.abc import AsyncGenerator

import orjson

from proxy.stream.sse import Frame, Splitter


async def hide_usage(chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Every other frame keeps its bytes."""
    splitter = Splitter()
    try:
        async for chunk in chunks:
            kept = b"".join(f.raw for f in splitter.feed(chunk) if not is_usage(f))
            if kept:
                yield kept
        rest = b"".join(f.raw for f in splitter.finish() if not is_usage(f))
        if rest:
            yield rest
    finally:
        await chunks.aclose()


def is_usage(frame: Frame) -> bool:
    """Whether a frame is the chunk that holds usage and nothing else."""
    if frame.data is None or b'"usage"' not in frame.data or b'"choices"' not in frame.data:
        return False
    try:
        chunk = orjson.loads(frame.data)
    except orjson.JSONDecodeError:
        return False
    return isinstance(chunk, dict) and chunk.get("choices") == [] and bool(chunk.get("usage"))
