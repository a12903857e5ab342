"""A chat application with the official SDK."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.demo.catalogue import load_tools
from proxy.demo.gateway import Live, serve_gateway
from proxy.demo.play import Player
from proxy.demo.scenario import Prompt
from proxy.settings import Deferral


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder: Path = tmp_path_factory.mktemp("demo")
    with serve_gateway(folder, Deferral()) as running:
        yield running


def test_a_prompt_is_played_until_its_answer(live: Live) -> None:
    """The called tool, its arguments, and the text after its result."""
    prompt = Prompt("List the storage accounts in my subscription", "storage_account_get")
    (played,) = Player(live, load_tools()).play([prompt])
    assert played.called == ("storage_account_get",)
    assert played.arguments == ("{}",)
    assert played.answer.startswith("storage_account_get returned: ")


def test_what_the_upstream_received_is_measured(live: Live) -> None:
    """Tools, their tokens and names, before and after the result."""
    prompt = Prompt("List the storage accounts in my subscription", "storage_account_get")
    (played,) = Player(live, load_tools()).play([prompt])
    (first,), (rest,) = played.first, played.rest
    assert first.tools == len(first.names) < 20
    assert 1_000 < first.tool_tokens < 8_000
    assert "tool_search" in first.names
    assert set(first.names) <= set(rest.names)


def test_what_was_predicted_comes_from_the_ledger(live: Live) -> None:
    """The same numbers that an operator can look up."""
    prompt = Prompt("List the storage accounts in my subscription", "storage_account_get")
    (played,) = Player(live, load_tools()).play([prompt])
    assert "storage_account_get" in played.predicted
    assert played.discovered == ()


def test_what_was_searched_is_discovered(live: Live) -> None:
    """Two upstream calls for one request, of which the client sees nothing."""
    headers = {"x-usher-predict": "off"}
    prompt = Prompt("Show me my MySQL servers", "mysql_list", headers=headers)
    (played,) = Player(live, load_tools()).play([prompt])
    assert len(played.first) == 2
    assert "mysql_list" in played.discovered
    assert played.called == ("mysql_list",)


def test_a_conversation_can_go_on(live: Live) -> None:
    """The second prompt is sent with everything said before."""
    prompts = [Prompt("I like green tea", None), Prompt("thanks", None, follows=True)]
    Player(live, load_tools()).play(prompts)
    roles = [message["role"] for message in live.upstream.received[-1].json["messages"]]
    assert roles == ["user", "assistant", "user"]
