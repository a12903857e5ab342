"""The built-in gate comes out, in the best form that is installed: state in, probability out.

It decides recall first: where it is unsure the memory agent runs, and that one declines.
"""

import struct
import threading
import zlib
from array import array
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.judge.questions import State
from proxy.memory.gate.pair import ease_of, read_pair
from proxy.memory.gate.words import BUCKETS, Words
from proxy.tools.semantic import FAILURES, has_semantic, load_universal, restrain_threads

if TYPE_CHECKING:
    from proxy.memory.gate.network import Network
    from proxy.tools.semantic import UniversalEncoder

Gate = Callable[[State], float | None]
Load = Callable[[], "UniversalEncoder"]

_FOLDER = Path(__file__).parent
NETWORK_FILE = _FOLDER / "network.npz"
WORDS_FILE = _FOLDER / "words.bin"
_HEAD = struct.Struct("<ff")


class WordGate:
    """Reads the wording."""

    def __init__(self, words: Words) -> None:
        self.words = words

    def __call__(self, state: State) -> float | None:
        pair = read_pair(state)
        return self.words.judge(pair) if pair.latest.strip() else None


class MeaningGate:
    """Reads sentence vectors, and the wording beside them."""

    def __init__(self, network: "Network", encoder: "UniversalEncoder", words: Words) -> None:
        self._network = network
        self._words = words
        self._encoder = encoder
        self._alone = threading.Lock()

    def __call__(self, state: State) -> float | None:
        from proxy.memory.gate.network import read_inputs, read_texts, vectors_of

        pair = read_pair(state)
        if not pair.latest.strip():
            return None
        texts = read_texts(pair)
        wanted = texts.all
        with self._alone:
            vectors = vectors_of(wanted, self._encoder.encode(wanted))
        letters, ease = self._words.score(pair), ease_of(pair.latest)
        return self._network.judge(*read_inputs(texts, vectors), letters, ease)


class LateGate:
    """Reads the wording until the model that reads meaning is loaded, which takes half a second."""

    def __init__(self, first: Gate) -> None:
        self._gate = first

    def __call__(self, state: State) -> float | None:
        return self._gate(state)

    def improve(self, warn: Callable[[str], object], load: Load) -> None:
        """Load the better form; runs in a thread of its own."""
        try:
            self._gate = load_meaning(load)
        except FAILURES as failure:
            warn(str(failure))


def load_gate(warn: Callable[[str], object], load: Load = load_universal) -> Gate:
    """The gate, at once; it gets better when the extra `semantic` is loaded, if it is there.

    `load` is asked for the sentence model, so that others may use the same one.
    """
    late = LateGate(load_words())
    if has_semantic():
        thread = threading.Thread(target=late.improve, args=(warn, load), name="gate", daemon=True)
        thread.start()
    return late


def load_words() -> WordGate:
    """The form that needs nothing."""
    raw = zlib.decompress(WORDS_FILE.read_bytes())
    scale, shift = _HEAD.unpack_from(raw)
    weights = array("b", raw[_HEAD.size : _HEAD.size + BUCKETS])
    rarities = array("B", raw[_HEAD.size + BUCKETS :])
    assert len(weights) == len(rarities) == BUCKETS
    return WordGate(Words(weights, rarities, scale, shift))


def load_meaning(load: Load = load_universal) -> MeaningGate:
    """The form that needs the extra `semantic`. Raises one of FAILURES without it."""
    restrain_threads()
    import numpy as np

    from proxy.memory.gate.network import Network

    with np.load(NETWORK_FILE, allow_pickle=False) as file:
        weights: Mapping[str, object] = {name: file[name] for name in file.files}
    encoder = load()
    encoder.encode(["warm up"])
    return MeaningGate(Network(weights), encoder, load_words().words)  # type: ignore[arg-type] # numpy's own types


def pack_words(weights: list[int], rarities: list[int], scale: float, shift: float) -> bytes:
    """The file of `load_words`."""
    tables = array("b", weights).tobytes() + array("B", rarities).tobytes()
    return zlib.compress(_HEAD.pack(scale, shift) + tables, 9)
