"""The conversation itself says which tools it has surfaced."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.tools.history import Asked, Surfaced, fold_surfaced, read_history
from proxy.tools.predict import Cue
from proxy.wire import JSONObject

_ROLES = st.sampled_from(["user", "assistant", "tool", "system", "weird"])
_KNOWN = {"a", "b", "c"}


def _user(text: str) -> JSONObject:
    return {"role": "user", "content": text}


def _calls(*names: str) -> JSONObject:
    calls = [{"id": f"id-{name}", "function": {"name": name, "arguments": "{}"}} for name in names]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _result(name: str) -> JSONObject:
    return {"role": "tool", "tool_call_id": f"id-{name}", "content": "done"}


def _predict(asked: Asked) -> list[str]:
    return [word for word in asked.cue.newest_user.split() if not asked.cue.results]


def test_a_cue_holds_the_end_of_the_conversation() -> None:
    """A prediction sees the two newest user messages, the last reply and the calls so far."""
    history = read_history([
        {"role": "system", "content": "Be kind."},
        _user("one"), _calls("a"), _result("a"), {"role": "assistant", "content": "ok"},
        _user("two"),
    ])  # fmt: skip
    asked = [event.cue for event in history.events if isinstance(event, Asked)]
    assert asked == [
        Cue("one", "", "", (), ()),
        Cue("one", "", "", ("a",), ("a",)),
        Cue("two", "one", "ok", ("a",), ()),
    ]
    assert history.system == "Be kind."
    assert history.called == ("a",)
    assert history.newest is not None
    assert (history.newest.position, history.newest.names) == (4, ())
    assert read_history([_user("x")]).newest is None


def test_results_at_the_end_are_a_moment_too() -> None:
    """Tools are predicted anew when results have just arrived."""
    history = read_history([_user("x"), _calls("a", "b"), _result("b"), _result("a")])
    last = history.events[-1]
    assert isinstance(last, Asked)
    assert last.cue.results == ("b", "a")


def test_prefill_and_legacy_calls_are_recognised() -> None:
    """Both make hidden rounds impossible."""
    assert read_history([_user("x"), {"role": "assistant", "content": "So"}]).prefill
    assert read_history([{"role": "function", "name": "f", "content": ""}]).legacy
    assert read_history([{"role": "assistant", "function_call": {"name": "f"}}]).legacy
    assert not read_history([]).prefill


def test_surfaced_tools_stand_in_first_surfaced_order() -> None:
    """Predictions, hidden finds and calls are added where they happened, each once."""
    history = read_history([_user("b zz"), _calls("a"), _result("a"), _user("a c b")])
    position = 1
    surfaced = fold_surfaced(history, _predict, _KNOWN, {position: ("c",)})
    assert surfaced.names == ["b", "c", "a"]
    assert surfaced.predicted == ["b"]
    assert surfaced.discovered == ["c"]


def test_a_guess_is_not_a_discovery() -> None:
    """A tool is listed under the way it first came."""
    surfaced = Surfaced()
    surfaced.add(["a"], surfaced.predicted)
    surfaced.add(["a", "b"], surfaced.discovered)
    assert (surfaced.predicted, surfaced.discovered) == (["a"], ["b"])


@pytest.mark.item("prediction/two-turns")
@given(
    messages=st.lists(
        st.fixed_dictionaries(
            {"role": _ROLES},
            optional={
                "content": st.sampled_from(["a", "b c", "", None, 3, [{"text": "c"}], {}]),
                "tool_calls": st.sampled_from(
                    [None, 3, [], [3], [{}], [{"function": {"name": "a"}, "id": 3}],
                     [{"function": {"name": "c"}, "id": "i"}], [{"function": {"name": 3}}]]
                ),
                "tool_call_id": st.sampled_from(["i", 3, None]),
            },
        ),
        max_size=8,
    ),
    cut=st.integers(0, 8),
)  # fmt: skip
def test_a_longer_history_only_appends(messages: list[JSONObject], cut: int) -> None:
    """Whatever the messages, the tools of an earlier request come first in a later one."""
    before = fold_surfaced(read_history(messages[:cut]), _predict, _KNOWN, {}).names
    after = fold_surfaced(read_history(messages), _predict, _KNOWN, {}).names
    ends_in_results = bool(messages[:cut]) and messages[:cut][-1]["role"] == "tool"
    assert ends_in_results or after[: len(before)] == before
