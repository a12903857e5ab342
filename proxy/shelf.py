"""A tenant's raw `tools` bytes come in; a toolbox that was built once, off the loop, goes out."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

from proxy.settings import Deferral, Prediction
from proxy.tools.catalog import digest_tools, read_catalogue
from proxy.tools.document import Document
from proxy.tools.lessons import LearnedIndex, Lessons
from proxy.tools.memo import Memo
from proxy.tools.rank import Index
from proxy.tools.toolbox import MakeIndex, Toolbox

_Place = tuple[str, str, bool]
RECENT = 4
"""Arrays per tenant that are recognised by their bytes alone."""


class Shelf:
    """Toolboxes by tenant and content, least recently used ones leaving when memory is short.

    Requests that bring the same unknown catalogue at once wait for one build. A malformed array is
    remembered as None, so that it is not read again and again.
    """

    def __init__(
        self,
        deferral: Deferral,
        prediction: Prediction,
        make_index: MakeIndex,
        max_bytes: int,
        lessons: Lessons | None = None,
    ) -> None:
        self._deferral = deferral
        self._prediction = prediction
        self._make_index = make_index
        self._max_bytes = max_bytes
        self._lessons = lessons
        self._memo = Memo()
        self._boxes: OrderedDict[_Place, Toolbox | None] = OrderedDict()
        self._building: dict[_Place, asyncio.Future[Toolbox | None]] = {}
        self._recent: dict[str, tuple[tuple[bytes, str], ...]] = {}
        self.bytes = 0

    def find(self, tenant: str, digest: str) -> Toolbox | None:
        """A tenant's toolbox that is there already, by the digest of its catalogue."""
        places = ((tenant, digest, False), (tenant, digest, True))
        return next((box for place in places if (box := self._boxes.get(place))), None)

    async def take(self, tenant: str, raw: memoryview, *, everything: bool) -> Toolbox | None:
        """The toolbox of a `tools` array; None when the array is malformed.

        `everything` defers small tools as well (`x-usher-defer: all`).
        """
        place = (tenant, self._digest(tenant, raw), everything)
        if place in self._boxes:
            self._boxes.move_to_end(place)
            return self._boxes[place]
        building = self._building.get(place) or self._start(place, bytes(raw))
        return await asyncio.shield(building)

    def known(self, tenant: str) -> list[bytes]:
        """The arrays that a tenant sent lately; `take` knows a view of one without hashing it."""
        return [raw for raw, _ in self._recent.get(tenant, ())]

    def _digest(self, tenant: str, raw: memoryview) -> str:
        known = (digest for array, digest in self._recent.get(tenant, ()) if raw.obj is array)
        return next(known, None) or digest_tools(raw)

    def _start(self, place: _Place, raw: bytes) -> "asyncio.Future[Toolbox | None]":
        loop = asyncio.get_running_loop()
        building = loop.run_in_executor(None, self._prepare, raw, place)
        self._building[place] = building
        building.add_done_callback(lambda done: self._finish(place, raw, done))
        return building

    def _finish(self, place: _Place, raw: bytes, done: "asyncio.Future[Toolbox | None]") -> None:
        self._building.pop(place, None)
        if done.cancelled() or done.exception() is not None:
            return
        toolbox = done.result()
        self._keep(place, toolbox)
        if toolbox is not None:
            tenant, digest, _ = place
            others = [one for one in self._recent.get(tenant, ()) if one[1] != digest]
            self._recent[tenant] = ((raw, digest), *others[: RECENT - 1])
            done.get_loop().run_in_executor(None, toolbox.count)

    def _prepare(self, raw: bytes, place: _Place) -> Toolbox | None:
        tenant, _, everything = place
        catalogue = read_catalogue(raw)
        if catalogue is None:
            return None
        deferral = self._deferral
        if everything:
            deferral = deferral.model_copy(update={"small_chars": 0})
        make_index = self._make_index_for(tenant)
        return Toolbox(catalogue, deferral, self._prediction, make_index, self._memo)

    def _make_index_for(self, tenant: str) -> MakeIndex:
        """How a tenant's catalogues are indexed: with what its own searches taught."""
        if self._lessons is None:
            return self._make_index
        recall = partial(self._lessons.recall, tenant)

        def make(documents: Sequence[Document]) -> Index:
            return LearnedIndex(self._make_index(documents), recall)

        return make

    def _keep(self, place: _Place, toolbox: Toolbox | None) -> None:
        self._boxes[place] = toolbox
        self.bytes += _size(toolbox)
        while self.bytes > self._max_bytes and len(self._boxes) > 1:
            place, oldest = self._boxes.popitem(last=False)
            self.bytes -= _size(oldest)
            self._forget(place)

    def _forget(self, place: _Place) -> None:
        tenant, digest, _ = place
        left = tuple(one for one in self._recent.get(tenant, ()) if one[1] != digest)
        if left:
            self._recent[tenant] = left
        else:
            self._recent.pop(tenant, None)


def _size(toolbox: Toolbox | None) -> int:
    return 200 if toolbox is None else toolbox.size
