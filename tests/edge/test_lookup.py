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


async def test_a_reply_says_how_its_tools_are_named_next_time() -> None:
    """The header's digest stands for the tools, and the reply to it has the same."""
    desk = Desk()
    first = await desk.ask({"query": "storm", "tools": city_tools()})
    digest = first.headers["x-usher-catalogue"]
    again = await desk.ask({"query": "storm", "catalogue": digest})
    assert (again.status, again.body) == (200, first.body)
    assert again.headers["x-usher-catalogue"] == digest
    assert set(orjson.loads(again.body)) == {"tools", "total_searched"}


async def test_an_unknown_digest_is_no_unknown_url() -> None:
    """The code says which of the two is missing; another tenant's digest is as unknown."""
    desk = Desk()
    other = await desk.shelf.take("b", memoryview(orjson.dumps(city_tools())), everything=False)
    assert other is not None
    for digest in ("unknown", other.catalogue.digest):
        answered = await desk.ask({"query": "storm", "catalogue": digest})
        error = orjson.loads(answered.body)["error"]
        assert answered.status == 404
        assert (error["code"], error["param"]) == ("catalogue_not_found", "catalogue")


async def test_no_tools_are_no_mistake() -> None:
    """A program whose list happens to be empty gets an empty result."""
    answered = await Desk().ask({"query": "storm", "tools": []})
    assert answered.status == 200
    assert orjson.loads(answered.body) == {"tools": [], "total_searched": 0}
    assert "x-usher-catalogue" not in answered.headers


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", {"query": "x"}, {"query": "x", "tools": [1]}, {"query": 3, "tools": []},
     {"query": "x", "tools": [], "top_k": 21}, {"query": "x", "tools": "y"},
     {"query": "x", "catalogue": 7}],
)  # fmt: skip
async def test_a_wrong_question_is_a_400(body: JSONObject | bytes) -> None:
    """In OpenAI's shape."""
    answered = await Desk().ask(body)
    assert answered.status == 400
    assert orjson.loads(answered.body)["error"]["type"] == "invalid_request_error"
