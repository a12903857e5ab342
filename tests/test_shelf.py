"""Catalogues are prepared once per tenant and forgotten when memory is short."""

import asyncio
from collections.abc import Sequence

import orjson
import pytest

from proxy.settings import Deferral, Prediction
from proxy.shelf import Shelf
from proxy.tools.document import Document
from proxy.tools.lessons import Lessons
from proxy.tools.rank import Index, build_lexical
from tests.tools.samples import city_tools, function

pytestmark = pytest.mark.anyio

_RAW = memoryview(orjson.dumps(city_tools()))


class Counting:
    """Builds indexes and counts them."""

    def __init__(self) -> None:
        self.built = 0

    def __call__(self, documents: Sequence[Document]) -> Index:
        self.built += 1
        return build_lexical(documents)


def _shelf(counting: Counting, max_bytes: int = 1_000_000) -> Shelf:
    return Shelf(Deferral(small_chars=0), Prediction(), counting, max_bytes)


async def test_concurrent_requests_share_one_build() -> None:
    """A thundering herd with a new catalogue costs one preparation."""
    counting = Counting()
    shelf = _shelf(counting)
    boxes = await asyncio.gather(*(shelf.take("a", _RAW, everything=False) for _ in range(20)))
    assert counting.built == 1
    assert len({id(box) for box in boxes}) == 1


async def test_tenants_do_not_share() -> None:
    """The hash is not collision-resistant, so what one tenant sends reaches no other."""
    counting = Counting()
    shelf = _shelf(counting)
    first = await shelf.take("a", _RAW, everything=False)
    assert await shelf.take("b", _RAW, everything=False) is not first


async def test_everything_defers_small_tools_too() -> None:
    """The client's wish is a different preparation of the same catalogue."""
    shelf = Shelf(Deferral(), Prediction(), Counting(), 1_000_000)
    raw = memoryview(orjson.dumps([function("tiny")]))
    some = await shelf.take("a", raw, everything=False)
    every = await shelf.take("a", raw, everything=True)
    assert some is not None
    assert every is not None
    assert not some.deferrable
    assert list(every.deferrable) == ["tiny"]


async def test_memory_is_bounded() -> None:
    """The least recently used catalogue leaves, and the newest stays whatever its size."""
    shelf = _shelf(Counting(), max_bytes=1)
    for number in range(5):
        raw = memoryview(orjson.dumps([*city_tools(), function(f"f{number}")]))
        box = await shelf.take("a", raw, everything=False)
        assert box is not None
        assert shelf.bytes == box.size


async def test_a_malformed_array_is_read_once() -> None:
    """Its verdict is remembered like a catalogue."""
    shelf = _shelf(Counting())
    raw = memoryview(b"[1]")
    assert await shelf.take("a", raw, everything=False) is None
    assert await shelf.take("a", raw, everything=False) is None
    assert shelf.bytes == 200


async def test_a_waiter_that_leaves_does_not_stop_the_build() -> None:
    """The next request finds the catalogue ready."""
    counting = Counting()
    shelf = _shelf(counting)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await shelf.take("a", _RAW, everything=False)
    assert await shelf.take("a", _RAW, everything=False) is not None
    assert counting.built == 1


async def test_what_a_tenant_learned_moves_its_own_rankings_only() -> None:
    """Lessons count at once, without a new build."""
    lessons = Lessons()
    shelf = Shelf(Deferral(small_chars=0), Prediction(), build_lexical, 1_000_000, lessons)
    own = await shelf.take("a", _RAW, everything=False)
    other = await shelf.take("b", _RAW, everything=False)
    lessons.learn("a", "gale", "weather_alerts")
    assert own is not None
    assert other is not None
    found = [own.index.documents[hit.position].name for hit in own.index.rank("gale", 5)]
    assert found == ["weather_alerts"]
    assert other.index.rank("gale", 5) == []
