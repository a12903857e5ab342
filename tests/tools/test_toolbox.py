"""A catalogue is prepared once."""

from concurrent.futures import ThreadPoolExecutor

import orjson
import pytest

from proxy.tools.predict import Cue
from proxy.tools.toolbox import choose_name
from tests.tools.samples import catalogue, city_tools, function, toolbox


def test_the_search_tool_lists_every_deferrable_tool() -> None:
    """Nothing that was taken out of the prompt is lost from sight."""
    box = toolbox(*city_tools())
    description = orjson.loads(box.search_raw)["function"]["description"]
    assert all(name.partition("_")[2] in description for name in box.deferrable)


@pytest.mark.item("catalog/our-names")
def test_the_search_tools_name_is_free() -> None:
    """A client's own tool of that name keeps it."""
    assert choose_name(catalogue(function("f")), "tool_search", "find_tools") == "tool_search"
    taken = catalogue(function("tool_search"))
    assert choose_name(taken, "tool_search", "find_tools") == "find_tools"
    both = catalogue(function("tool_search"), function("find_tools"))
    assert choose_name(both, "tool_search", "find_tools") == f"tool_search_{both.digest[:4]}"


def test_a_prediction_is_remembered() -> None:
    """The same moment of a conversation gets the same tools, whatever happened since."""
    box = toolbox(*city_tools())
    cue = Cue("what is the weather in Oslo?", "", "", (), ())
    first = box.predict(cue)
    box.usage["mail_delete"] = 1_000_000
    assert box.predict(cue) is first


def test_checkers_are_compiled_once() -> None:
    """A tool's schema is prepared on its first unloaded call only."""
    box = toolbox(*city_tools())
    assert box.checker("mail_send") is box.checker("mail_send")


def test_savings_are_unknown_until_counted() -> None:
    """Unknown is None, never 0."""
    box = toolbox(*city_tools() * 1)
    assert box.count_saved(set()) is None
    box.count()
    everything, nothing = box.count_saved(set()), box.count_saved(set(box.deferrable))
    assert everything is not None
    assert nothing == 0
    assert box.size > 0


def test_old_turns_of_a_long_conversation_are_remembered() -> None:
    """Two thousand moments are predicted once, however often their conversation comes back."""
    box = toolbox(*city_tools())
    cues = [Cue(f"email {number}", "", "", (), ()) for number in range(2_000)]
    first = [box.predict(cue) for cue in cues]
    assert all(box.predict(cue) is known for cue, known in zip(cues, first, strict=True))


def test_moments_can_be_foreseen_beside_the_loop() -> None:
    """Whoever asks first, in whichever thread, decides what a moment gets."""
    box = toolbox(*city_tools())
    cues = [Cue(f"the weather in Oslo on day {day}", "", "", (), ()) for day in range(40)]
    assert not box.foreknows(cues[0])
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(box.foresee, [cues, cues, cues[::-1]]))
    assert all(map(box.foreknows, cues))
    first = [box.predict(cue) for cue in cues]
    box.usage["mail_delete"] = 1_000_000
    box.foresee(cues)
    assert [box.predict(cue) for cue in cues] == first
