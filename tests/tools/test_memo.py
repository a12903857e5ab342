"""Predictions are remembered for all catalogues, the least recently used ones leave."""

import threading

from proxy.settings import Deferral, Prediction
from proxy.tools.memo import Memo
from proxy.tools.predict import Cue, Predicted
from proxy.tools.rank import build_lexical
from proxy.tools.toolbox import Toolbox
from tests.tools.samples import catalogue, city_tools


def predicted(name: str) -> Predicted:
    return Predicted((name,), {name: 1.0}, (), "clear")


def test_the_first_prediction_of_a_moment_counts() -> None:
    """Two threads may predict one moment; both get what the first one kept."""
    memo = Memo()
    first = predicted("a")
    assert memo.keep(b"moment", first) is first
    assert memo.keep(b"moment", predicted("b")) is first
    assert memo.find(b"moment") is first


def test_what_was_not_used_for_longest_leaves() -> None:
    """To be found counts as use."""
    memo = Memo(most=2)
    memo.keep(b"1", predicted("a"))
    memo.keep(b"2", predicted("b"))
    memo.find(b"1")
    memo.keep(b"3", predicted("c"))
    assert [key in memo for key in (b"1", b"2", b"3")] == [True, False, True]
    assert memo.find(b"2") is None


def test_asking_whether_it_is_known_is_no_use() -> None:
    """A look does not keep an entry alive."""
    memo = Memo(most=1)
    memo.keep(b"1", predicted("a"))
    assert b"1" in memo
    memo.keep(b"2", predicted("b"))
    assert b"1" not in memo


def test_threads_keep_it_within_its_size() -> None:
    """Four threads that fill it at once leave as many entries as there may be."""
    memo = Memo(most=50)

    def fill(start: int) -> None:
        for number in range(start, start + 2_000):
            memo.keep(b"%d" % number, predicted("a"))
            memo.find(b"%d" % (number - 7))

    threads = [threading.Thread(target=fill, args=(1_000 * at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(memo) == 50


def test_toolboxes_that_share_a_memo_keep_their_entries_apart() -> None:
    """The same words get tools of their own catalogue, whoever else asked them."""
    memo = Memo()
    weather, mail = city_tools()[:3], city_tools()[3:]
    deferral = Deferral(small_chars=0)
    boxes = [
        Toolbox(catalogue(*tools), deferral, Prediction(), build_lexical, memo)
        for tools in (weather, mail, weather)
    ]
    cue = Cue("Search the mailbox for the weather of a city", "", "", (), ())
    names = [box.predict(cue).names for box in boxes]
    assert len(memo) == 3
    assert all(name.startswith("weather") for name in names[0])
    assert all(name.startswith("mail") for name in names[1])
    assert names[2] == names[0]
