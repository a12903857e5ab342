"""A turn's hidden searches and its calls come in; what they teach is kept, beside the turn."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.observe.capture import Capture
from proxy.tools.lessons import Lessons
from proxy.tools.sought import find_uses
from proxy.tools.toolbox import Toolbox
from proxy.wire import JSONObject

Spawn = Callable[[Coroutine[Any, Any, None]], bool]


@dataclass(frozen=True, slots=True)
class Learner:
    """Who learns from searches that ended in a call: rankings by `lessons`, a file by `capture`."""

    lessons: Lessons | None
    capture: Capture | None
    spawn: Spawn

    def notice(
        self, tenant: str, toolbox: Toolbox, hidden: Sequence[JSONObject], called: Sequence[str]
    ) -> None:
        """Begins to learn from calls that followed hidden messages; no turn waits for it."""
        if hidden and called:
            self.spawn(self._learn(tenant, toolbox, hidden, called))

    async def _learn(
        self, tenant: str, toolbox: Toolbox, hidden: Sequence[JSONObject], called: Sequence[str]
    ) -> None:
        for use in find_uses(hidden, toolbox.search_name, called, toolbox.index):
            if self.lessons is not None:
                self.lessons.learn(tenant, use.query, use.tool)
            if self.capture is not None:
                await asyncio.to_thread(self.capture.write, use.query, use.tool, use.others)
