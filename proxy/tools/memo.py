"""A moment of a conversation comes in; what was predicted for it the first time goes out."""

import threading
from collections import OrderedDict

from proxy.tools.predict import Predicted

MOST = 16_384
"""Remembered predictions of a process, of about a kilobyte: a conversation asks for each of its
old turns again, and one of 2,000 messages has a thousand of them."""


class Memo:
    """Predictions of all catalogues, the least recently used ones leaving first.

    One for the whole process, so that what it takes does not grow with the number of catalogues.
    Keys are digests that also stand for the catalogue. Safe to use from several threads.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, Predicted] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: bytes) -> bool:
        return key in self._kept

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: bytes) -> Predicted | None:
        """What was predicted for this moment, which counts as used now."""
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
            return known

    def keep(self, key: bytes, predicted: Predicted) -> Predicted:
        """Remembers a prediction; of two made at once the first one counts and is returned."""
        with self._lock:
            first = self._kept.setdefault(key, predicted)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return first
