"""A reply goes by; what became of a wish to remember is added at its end, if known in time."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import orjson

from proxy.memory.attach import Tail
from proxy.memory.session import Session

MOST_BYTES = 32 * 1024 * 1024
"""A longer JSON reply passes as it is; the next one will tell."""


def tell(
    chunks: AsyncGenerator[bytes], session: Session, content_type: bytes
) -> AsyncGenerator[bytes]:
    """The reply with the session's artifacts: a stream's frames, or a JSON object."""
    if content_type.startswith(b"text/event-stream"):
        return _tell_stream(chunks, session)
    return _tell_whole(chunks, session) if b"json" in content_type else chunks


async def _tell_stream(chunks: AsyncGenerator[bytes], session: Session) -> AsyncGenerator[bytes]:
    tail = Tail()
    async with aclosing(chunks):
        async for chunk in chunks:
            out = tail.feed(chunk)
            if out:
                yield out
            if tail.waits:
                artifacts = await session.join()
                yield tail.release(session.render(artifacts), artifacts)
    rest = tail.release(b"", [])
    if rest:
        yield rest


async def _tell_whole(chunks: AsyncGenerator[bytes], session: Session) -> AsyncGenerator[bytes]:
    body = bytearray()
    async with aclosing(chunks):
        async for chunk in chunks:
            body += chunk
            if len(body) > MOST_BYTES:
                break
        else:
            yield await _extended(bytes(body), session)
            return
        yield bytes(body)
        async for chunk in chunks:
            yield chunk


async def _extended(body: bytes, session: Session) -> bytes:
    artifacts = await session.join()
    if not artifacts:
        return body
    try:
        reply = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body
    return orjson.dumps(session.extend(reply, artifacts)) if isinstance(reply, dict) else body


async def precede(chunks: AsyncGenerator[bytes], session: Session) -> AsyncGenerator[bytes]:
    """A stream that Usher writes: comments go before the chunk that has the finish."""
    async with aclosing(chunks):
        async for chunk in chunks:
            yield session.render(session.said()) + chunk
