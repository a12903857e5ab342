"""Tools can be searched over HTTP."""

import orjson
import pytest

from proxy.edge.lookup import lookup_routes
from proxy.edge.routes import Extras, build_routes
from proxy.settings import Deferral, Prediction
from proxy.shelf import Shelf
from proxy.tools.rank import build_lexical
from proxy.wire import JSONObject
from tests.edge.driver import Answered, Rig, ask, refuse_chat
from tests.tools.samples import city_tools

pytestmark = pytest.mark.anyio

_URL = "/usher/tools/search"


class Desk:
    """A gateway that remembers catalogues."""

    def __init__(self) -> None:
        rig = Rig()
        self.shelf = Shelf(Deferral(), Prediction(), build_lexical, 1_000_000)
        extras = Extras(lookup_routes(rig.edge, self.shelf))
        self.app = build_routes(rig.edge, refuse_chat, rig.forward, extras)

    async def ask(self, body: JSONObject | bytes) -> Answered:
        """One question."""
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        return await ask(self.app, "POST", _URL, raw)


async def test_the_best_tools_come_with_their_schemas() -> None:
    """Small and pinned tools are searched like all others."""
    answered = await Desk().ask({"query": "send an e-mail", "tools": city_tools(), "top_k": 2})
    found = orjson.loads(answered.body)
    assert found["total_searched"] == 6
    assert found["tools"][0]["name"] == "mail_send"
    assert found["tools"][0]["inputSchema"]["required"] == ["to"]
    assert len(found["tools"]) == 2


async def test_a_known_catalogue_is_named_by_its_digest() -> None:
    """What was sent once need not be sent again; nobody else's digest works."""
    desk = Desk()
    raw = orjson.dumps(city_tools())
    toolbox = await desk.shelf.take("default", memoryview(raw), everything=False)
    assert toolbox is not None
    digest = toolbox.catalogue.digest
    answered = await desk.ask({"query": "storm", "catalogue": digest})
    assert orjson.loads(answered.body)["tools"][0]["name"] == "weather_alerts"
    assert desk.shelf.find("other", digest) is None
    assert (await desk.ask({"query": "storm", "catalogue": "unknown"})).status == 404


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", {"query": "x"}, {"query": "x", "tools": [1]}, {"query": 3, "tools": []},
     {"query": "x", "tools": [], "top_k": 21}, {"query": "x", "tools": "y"}],
)  # fmt: skip
async def test_a_wrong_question_is_a_400(body: JSONObject | bytes) -> None:
    """In OpenAI's shape."""
    answered = await Desk().ask(body)
    assert answered.status == 400
    assert orjson.loads(answered.body)["error"]["type"] == "invalid_request_error"
