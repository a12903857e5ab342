"""Something large is made once, whoever asks first."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proxy.lasting import open_lasting
from proxy.settings import Settings
from proxy.tools.document import Document
from proxy.tools.once import Once
from proxy.tools.semantic import UniversalEncoder


def test_two_threads_get_the_same_one() -> None:
    """The second waits for the first instead of making another."""
    begun = threading.Barrier(4)
    made: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    once = Once(make)

    def ask(_: int) -> object:
        begun.wait()
        return once()

    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(ask, range(4)))
    assert len(made) == 1
    assert set(got) == set(made)


def test_a_failure_is_not_kept() -> None:
    """Whoever asks after a failure tries again."""
    outcomes = [OSError("away"), "there"]

    def make() -> str:
        outcome = outcomes.pop(0)
        if isinstance(outcome, OSError):
            raise outcome
        return str(outcome)

    once = Once(make)
    with pytest.raises(OSError, match="away"):
        once()
    assert once() == "there"


def test_ranker_and_gate_share_one_sentence_model(tmp_path: Path) -> None:
    """A gateway with memory and semantic ranking loads 65 MB once."""
    _join_gates()
    before = _find_models()
    tree = {"memory": {"mode": "on"}, "prediction": {"ranker": "semantic"}}
    lasting = open_lasting(Settings.model_validate(tree), tmp_path)
    assert lasting.semantic is not None
    lasting.semantic.build([Document("mail_send", "", "Sends mail.", None)])
    lasting.semantic.settle(60)
    _join_gates()
    lasting.semantic.close()
    assert lasting.models["memory_request"]({"latest": "Please remember that I live in Rome."})
    assert len([one for one in _find_models() if one not in before]) == 1


def _join_gates() -> None:
    """Wait until no gate is being loaded, whoever's it is."""
    for thread in threading.enumerate():
        if thread.name == "gate":
            thread.join(60)


def _find_models() -> list[object]:
    """Those alive in this process."""
    gc.collect()
    return [thing for thing in gc.get_objects() if isinstance(thing, UniversalEncoder)]
