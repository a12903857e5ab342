"""The tools of a turn's first round."""

from collections.abc import Sequence

import pytest

from proxy.tools.arrange import Arrangement, Wishes, arrange
from proxy.tools.choice import Choice
from proxy.tools.history import Asked, read_history
from proxy.wire import JSONObject
from tests.tools.samples import city_tools, function, toolbox

_USER: JSONObject = {"role": "user", "content": "hi"}
_BOX = toolbox(*city_tools(), {"type": "custom", "custom": {"name": "grammar"}})


def _predict(_: Asked) -> Sequence[str]:
    return ("mail_send", "grammar")


def _arrange(choice: Choice | None = None, *messages: JSONObject, **wishes: int) -> Arrangement:
    history = read_history(messages or [_USER])
    return arrange(
        _BOX,
        history,
        Wishes(choice or Choice("auto"), eager_chars=wishes.get("eager_chars", 0)),
        _predict,
        {},
    )


def test_an_ordinary_turn_searches() -> None:
    """Eager tools, the search tool, and what was predicted of the deferred ones."""
    found = _arrange()
    assert [tool.name for tool in found.eager] == ["grammar"]
    assert found.search_raw == _BOX.search_raw
    assert found.surfaced.names == ["mail_send"]
    assert found.declared() == {"grammar", "mail_send"}


@pytest.mark.item("params/choice-none")
def test_no_choice_means_no_search_and_no_guess() -> None:
    """With tool_choice none only tools that the history called are declared."""
    called: JSONObject = {
        "role": "assistant",
        "tool_calls": [{"id": "1", "function": {"name": "weather_now", "arguments": "{}"}}],
    }
    found = _arrange(Choice("none"), _USER, called)
    assert found.search_raw is None
    assert found.surfaced.names == ["weather_now"]


@pytest.mark.item("params/choice-named")
def test_a_named_tool_is_whole_and_alone() -> None:
    """Forcing one tool needs neither a search nor a prediction."""
    found = _arrange(Choice("named", ("mail_delete",)))
    assert [tool.name for tool in found.eager] == ["mail_delete", "grammar"]
    assert found.reasons["mail_delete"] == "tool_choice"
    assert found.search_raw is None
    assert found.surfaced.names == []


@pytest.mark.item("params/choice-allowed-few")
def test_few_allowed_tools_are_sent_whole() -> None:
    """Below the eager budget an allowed set needs no search."""
    found = _arrange(Choice("allowed", ("mail_send", "mail_search")), eager_chars=4_000)
    assert [tool.name for tool in found.eager] == ["mail_send", "mail_search", "grammar"]
    assert found.search_raw is None


@pytest.mark.item("params/choice-allowed-many")
def test_many_allowed_tools_bound_the_search() -> None:
    """The listing names allowed tools only, and no other can be surfaced."""
    found = _arrange(Choice("allowed", ("weather_now", "weather_alerts")))
    assert sorted(found.pool) == ["weather_alerts", "weather_now"]
    assert found.search_raw is not None
    assert b"alerts" in found.search_raw
    assert b"delete" not in found.search_raw
    assert found.surfaced.names == []


@pytest.mark.item("reported/prompt-names-tool")
def test_prompt_and_client_can_keep_tools() -> None:
    """A tool named by the system prompt, or kept by the client's patterns, is whole."""
    system: JSONObject = {"role": "system", "content": "Always call weather_alerts first."}
    history = read_history([system, _USER])
    found = arrange(_BOX, history, Wishes(Choice("auto"), keep=("mail_d*",)), _predict, {})
    assert [tool.name for tool in found.eager] == ["weather_alerts", "mail_delete", "grammar"]
    assert found.reasons["weather_alerts"] == "system prompt"
    assert found.reasons["mail_delete"] == "kept"


def test_too_many_surfaced_tools_are_cut() -> None:
    """The limit of loaded tools holds."""
    box = toolbox(*(function(f"tool_{number}") for number in range(9)))
    found = arrange(
        box,
        read_history([_USER]),
        Wishes(Choice("auto"), max_surfaced=4),
        lambda _: list(box.deferrable),
        {},
    )
    assert len(found.surfaced.names) <= 4
