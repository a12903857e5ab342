"""Other settings in a gateway that serves."""

from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from proxy.app import Gateway, build_gateway
from proxy.errors import ConfigError
from proxy.settings import Settings
from proxy.tools.catalog import digest_tools
from proxy.wire import JSON, JSONObject
from tests.edge.driver import CHAT, ask
from tests.fakes.transport import FakeTransport
from tests.turns import completion, request

pytestmark = pytest.mark.anyio

_TREE: JSONObject = {
    "upstream": {"base_url": "http://up.test/v1", "api_key": "old", "retries": 0},
    "deferral": {"min_tools": 1, "small_chars": 0},
    "prediction": {"mode": "off"},
    "ledger": {"enabled": False},
}


def _settings(**sections: JSON) -> Settings:
    return Settings.model_validate({**_TREE, **sections})


def _gateway(folder: Path) -> tuple[Gateway, FakeTransport]:
    transport = FakeTransport(answer=lambda _: completion("Hi"))
    return build_gateway(_settings(), folder, {"openai": transport}), transport


async def _tools(gateway: Gateway, transport: FakeTransport) -> Sequence[str]:
    """The names of the tools that the upstream gets for a request with tools."""
    headers = [("content-type", "application/json")]
    assert (await ask(gateway.app, "POST", CHAT, orjson.dumps(request()), headers)).status == 200
    body = transport.sent[-1].body
    assert isinstance(body, bytes)
    sent = orjson.loads(body)
    return [tool["function"]["name"] for tool in sent["tools"]]


async def test_the_next_request_is_served_by_the_new_settings(tmp_path: Path) -> None:
    """Deferral, address and key of the upstream, prices: whatever does not need a restart."""
    gateway, transport = _gateway(tmp_path)
    before = await _tools(gateway, transport)
    upstream = {"base_url": "http://other.test/v1", "api_key": "new", "retries": 0}
    await gateway.reload(_settings(upstream=upstream, deferral={"mode": "off"}))
    after = await _tools(gateway, transport)
    assert "tool_search" in before
    assert "tool_search" not in after
    assert transport.sent[-1].url == "http://other.test/v1/chat/completions"
    assert (b"authorization", b"Bearer new") in transport.sent[-1].headers


async def test_the_same_settings_have_the_same_number(tmp_path: Path) -> None:
    """So that replicas can be compared; it tells nothing about secrets."""
    gateway, _ = _gateway(tmp_path)

    def number() -> float | None:
        return gateway.metrics.registry.get_sample_value("usher_config_hash")

    first = number()
    await gateway.reload(_settings(prices=[{"model": "m", "input": 1}]))
    assert number() != first
    upstream = {"base_url": "http://up.test/v1", "api_key": "rotated", "retries": 0}
    await gateway.reload(_settings(upstream=upstream))
    assert number() == first


@pytest.mark.parametrize("folder", ["missing", "empty"])
async def test_wording_that_cannot_be_read_is_found_before_it_is_needed(
    tmp_path: Path, folder: str
) -> None:
    """At the start and at a reload, which then changes nothing; by the setting's name."""
    (tmp_path / "empty").mkdir()
    wrong = _settings(
        classification={"questions": str(tmp_path / folder)}, deferral={"mode": "off"}
    )
    with pytest.raises(ConfigError, match=r"classification\.questions: .*no question wording"):
        build_gateway(wrong, tmp_path)
    gateway, transport = _gateway(tmp_path)
    with pytest.raises(ConfigError, match=r"classification\.questions: "):
        await gateway.reload(wrong)
    assert "tool_search" in await _tools(gateway, transport)


async def test_prepared_catalogues_outlive_what_does_not_concern_them(tmp_path: Path) -> None:
    """A reload that leaves deferral alone makes no request prepare its tools again."""
    gateway, transport = _gateway(tmp_path)
    await _tools(gateway, transport)
    headers = [("content-type", "application/json")]
    digest = digest_tools(memoryview(orjson.dumps(request()["tools"])))
    again = orjson.dumps({"query": "weather", "catalogue": digest})
    assert (await ask(gateway.app, "POST", "/usher/tools/search", again, headers)).status == 200
    await gateway.reload(_settings(prices=[{"model": "m", "input": 1}]))
    assert (await ask(gateway.app, "POST", "/usher/tools/search", again, headers)).status == 200
    await gateway.reload(_settings(deferral={"min_tools": 2}))
    assert (await ask(gateway.app, "POST", "/usher/tools/search", again, headers)).status == 404


async def test_a_file_that_lost_its_upstream_does_not_bring_in_the_stand_in(tmp_path: Path) -> None:
    """An emptied file is no wish to be answered by a toy: the model goes on answering."""
    gateway, transport = _gateway(tmp_path)
    with pytest.raises(ConfigError, match="no upstream is configured any more"):
        await gateway.reload(Settings())
    assert "tool_search" in await _tools(gateway, transport)
    assert transport.sent[-1].url.startswith("http://up.test/")
