"""Off against on."""

from dataclasses import replace

import pytest

from proxy.demo.play import Played, Sent
from proxy.demo.report import Run, compare, succeeded
from proxy.demo.scenario import Prompt
from proxy.wire import JSONObject

PROMPT = Prompt("ping it", "net_ping")
NAMES = ("net_ping", "net_trace")
WHOLE = Sent(2, 1000, NAMES, "")
FIRST = Sent(1, 20, ("tool_search",), "net_*: ping, trace")
SECOND = Sent(2, 50, ("tool_search", "net_ping"), "net_*: ping, trace")
OFF = Played(("net_ping",), ("{}",), "pong", (WHOLE,), (WHOLE,), (), ())
ON = Played(("net_ping",), ("{}",), "pong", (FIRST, SECOND), (SECOND,), (), ("net_ping",))


def _compare(on: Played, off: Played = OFF) -> JSONObject:
    return compare([PROMPT], NAMES, Run([off], [{"context": "main"}]), Run([on], []))


def test_the_largest_call_until_the_first_reply_is_compared() -> None:
    """A search makes the second call larger than the first, and that is the one that counts."""
    (turn,) = _compare(ON)["turns"]
    assert turn["off"] == {"tools": 2, "tool_tokens": 1000}
    assert (turn["on"]["tools"], turn["on"]["tool_tokens"]) == (2, 50)
    assert (turn["cut"], turn["rounds"]) == (0.95, 2)


def test_every_upstream_call_is_there_to_be_looked_at() -> None:
    """Also those after the tool's result."""
    (turn,) = _compare(ON)["turns"]
    assert [call["tool_tokens"] for call in turn["on"]["calls"]] == [20, 50, 50]


def test_a_good_run_succeeds() -> None:
    """Right tool, same answers, everything listed; with the ledgers of both runs."""
    report = _compare(ON)
    assert succeeded(report)
    assert report["usage"] == {"off": [{"context": "main"}], "on": []}
    assert report["memory"] is None  # the command adds it


@pytest.mark.parametrize(
    "bad",
    [
        replace(ON, answer="peng"),
        replace(ON, arguments=('{"a":1}',)),
        replace(ON, called=("net_trace",)),
        replace(ON, first=(replace(FIRST, listing="net_*: ping"), SECOND)),
    ],
)
def test_a_bad_run_does_not(bad: Played) -> None:
    """Another answer, other arguments, another tool, or a tool that nobody can find."""
    assert not succeeded(_compare(bad))


def test_equal_but_wrong_is_wrong() -> None:
    """Both runs may agree on the wrong tool."""
    wrong = replace(ON, called=("net_trace",))
    assert not succeeded(_compare(wrong, replace(OFF, called=("net_trace",))))


def test_a_group_that_is_only_counted_is_listed() -> None:
    """A large catalogue's listing names what fits; a wrong count is not taken."""
    counted = replace(FIRST, listing="net_* (2 tools)")
    assert _compare(replace(ON, first=(counted, SECOND)))["all_listed"]
    miscounted = replace(FIRST, listing="net_* (1 tools)\nother (0 tools)")
    assert not _compare(replace(ON, first=(miscounted, SECOND)))["all_listed"]


def test_the_larger_catalogue_has_to_succeed_as_well() -> None:
    """One failure is a failure."""
    good, bad = _compare(ON), _compare(replace(ON, answer="peng"))
    assert succeeded({**good, "larger": good})
    assert not succeeded({**good, "larger": bad})
