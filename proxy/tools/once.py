"""A way to make something large comes in; the same one thing for all who ask goes out."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class Once(Generic[Thing]):
    """Makes it when the first one asks; the others wait for that one."""

    def __init__(self, make: Callable[[], Thing]) -> None:
        self._make = make
        self._made: list[Thing] = []
        self._alone = threading.Lock()

    def __call__(self) -> Thing:
        """The thing. Raises what making it raises, and then the next one tries again."""
        with self._alone:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]
