"""`usher demo`, as a whole."""

import json
from functools import cache
from pathlib import Path

import orjson
import pytest

from proxy.demo import command
from proxy.demo.catalogue import load_tools
from proxy.wire import JSONObject


@cache
def _report() -> JSONObject:
    """Played once for all tests here: it takes some seconds."""
    return command.make_report()


def test_every_prompt_ends_with_the_right_tool_in_both_runs() -> None:
    """Deferral changes what is sent, never what is answered."""
    report = _report()
    assert [turn["prompt"] for turn in report["turns"] if not turn["right_tool"]] == []
    assert report["answers_equal"]


def test_every_tool_stays_listed() -> None:
    """One search away."""
    assert _report()["all_listed"]


def test_the_upstream_receives_a_fraction() -> None:
    """Of 113,941 tokens of tools."""
    turns = _report()["turns"]
    assert {turn["off"]["tool_tokens"] for turn in turns} == {113_941}
    assert min(turn["cut"] for turn in turns) >= 0.975


def test_the_larger_catalogue_shrinks_even_more() -> None:
    """By 98 %, and no clear request takes a search; the last one's prediction is off."""
    larger = _report()["larger"]
    assert larger["tools"] == 879
    assert larger["all_listed"]
    assert larger["answers_equal"]
    assert min(turn["cut"] for turn in larger["turns"]) >= 0.98
    assert [turn["rounds"] for turn in larger["turns"]] == [1] * 8 + [2]


def test_an_operator_s_catalogue_takes_its_place(tmp_path: Path) -> None:
    """What an application would send is tried out with one command."""
    path = tmp_path / "tools.json"
    path.write_bytes(orjson.dumps(load_tools()[:60]))
    larger = command.compare_catalogue(path)
    assert larger["tools"] == 60
    assert larger["answers_equal"]


def test_the_last_prompt_is_answered_by_a_search() -> None:
    """Its prediction is switched off."""
    last = _report()["turns"][-1]
    assert last["rounds"] == 2
    assert set(last["called"]) <= set(last["discovered"])


def test_both_ledgers_are_shown() -> None:
    """Search rounds only exist with deferral on, and they are booked apart."""
    usage = _report()["usage"]
    assert {row["context"] for row in usage["off"]} == {"main"}
    assert {row["context"] for row in usage["on"]} == {"main", "search_round"}


@pytest.mark.parametrize("as_json", [False, True])
def test_it_is_printed_and_the_exit_code_tells_success(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, as_json: bool
) -> None:
    """For people or as data."""
    monkeypatch.setattr(command, "make_report", lambda _catalogue: _report())
    code = command.run(as_json=as_json)
    printed = capsys.readouterr().out
    assert code == 0
    if as_json:
        assert json.loads(printed) == _report()
    else:
        assert "113,941" in printed
