"""The table of URLs: what is a turn, what is forwarded, what is unknown."""

import orjson
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from proxy.edge.routes import Extras
from proxy.errors import Forbidden
from proxy.upstream.transport import Prepared
from tests.edge.driver import CHAT, JSON_TYPE, Client, FakeTurn, Rig, ask
from tests.fakes.transport import FakeTransport

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "path", [CHAT, "/chat/completions", "//v1//chat/completions", "/openai/v1/chat/completions"]
)
async def test_chat_reaches_the_turn(path: str) -> None:
    """A chat request is a turn under every base URL."""
    turn = FakeTurn()
    answered = await ask(Rig(turn.chat).app, "POST", f"{path}?a=%20", b'{"model":"m"}')
    assert answered.status == 200
    (asked,) = turn.asked
    assert (asked.path, asked.query, asked.body) == ("/chat/completions", "a=%20", b'{"model":"m"}')
    assert asked.azure_deployment is None


async def test_azure_chat_reaches_the_turn() -> None:
    """Azure's SDK reaches the turn, with the model of its path."""
    turn = FakeTurn()
    url = "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"
    await ask(Rig(turn.chat).app, "POST", url, b"{}", [("api-key", "k")])
    (asked,) = turn.asked
    assert (asked.azure_deployment, asked.query) == ("gpt-4o", "api-version=2024-10-21")


async def test_other_api_paths_are_forwarded() -> None:
    """Whatever else is of the API goes to the upstream, with `/v1` or without."""
    transport = FakeTransport(answer=lambda _: Prepared(200, JSON_TYPE, b"{}"))
    app = Rig(transport=transport).app
    for path in ("/v1/embeddings", "/embeddings", "/v1/chat/completions/c1", "/v1/unheard/of"):
        assert (await ask(app, "POST", path, b"{}")).status == 200
    assert [request.url.removeprefix("http://up.test/v1") for request in transport.sent] == [
        "/embeddings",
        "/embeddings",
        "/chat/completions/c1",
        "/unheard/of",
    ]


@pytest.mark.parametrize("path", ["/", "/index.html", "/V1/models", "/wp-login.php", "/livez/"])
async def test_unknown_url_is_a_404_for_sdks(path: str) -> None:
    """Outside the API nothing is forwarded, and the error names what was asked."""
    rig = Rig()
    answered = await ask(rig.app, "GET", path)
    assert answered.status == 404
    labels = {"endpoint": "other", "status": "404"}
    assert rig.metrics.registry.get_sample_value("usher_requests_total", labels) == 1
    error = orjson.loads(answered.body)["error"]
    assert error["code"] == "unknown_url"
    assert error["type"] == "invalid_request_error"
    assert f"GET {path}" in error["message"]


async def test_wrong_method_is_a_405_for_sdks() -> None:
    """A URL of ours with the wrong method says so."""
    answered = await ask(Rig().app, "POST", "/livez", b"")
    assert answered.status == 405
    assert orjson.loads(answered.body)["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("POST", "/livez"), ("GET", "/v1/../x")]
)
async def test_refusals_of_ours_have_an_id(method: str, path: str) -> None:
    """The caller's own when it sent one, as with every other answer."""
    answered = await ask(Rig().app, method, path)
    assert answered.headers["x-request-id"].startswith("req_")
    answered = await ask(Rig().app, method, path, None, [("x-request-id", "mine-1")])
    assert answered.headers["x-request-id"] == "mine-1"


async def test_dot_segments_are_a_400() -> None:
    """A path that would leave the upstream's base URL is refused before anything is sent."""
    answered = await ask(Rig().app, "GET", "/v1/%2e%2e/secrets")
    assert answered.status == 400
    assert b"dot segments" in answered.body


async def test_extra_routes_go_before_forwarding() -> None:
    """Routes of other parts win over the upstream, and their refusals have the same shape."""

    async def shown(_: Request) -> Response:
        return PlainTextResponse("ours")

    async def refused(_: Request) -> Response:
        raise Forbidden("Not for you.")

    routes = [Route("/v1/systemone", shown), Route("/usher/secret", refused)]
    app = Rig(extras=Extras(routes)).app
    assert (await ask(app, "GET", "/v1/systemone")).body == b"ours"
    answered = await ask(app, "GET", "/usher/secret")
    assert (answered.status, answered.headers["content-type"]) == (403, "application/json")
    assert orjson.loads(answered.body)["error"]["message"] == "Not for you."


async def test_bug_in_an_extra_route_is_a_clean_500() -> None:
    """A bug behind the edge never shows its text to the client."""

    async def broken(_: Request) -> Response:
        raise KeyError("private words")

    app, client = Rig(extras=Extras([Route("/usher/broken", broken)])).app, Client()
    with pytest.raises(KeyError):
        await client.ask(app, "GET", "/usher/broken")
    assert client.answered.status == 500
    assert orjson.loads(client.answered.body)["error"]["message"] == "The gateway failed."


async def test_refusal_of_the_framework_keeps_its_status() -> None:
    """What Starlette refuses by itself has OpenAI's shape, too."""

    async def refused(_: Request) -> Response:
        raise HTTPException(422)

    app = Rig(extras=Extras([Route("/usher/odd", refused)])).app
    answered = await ask(app, "GET", "/usher/odd")
    assert answered.status == 422
    assert orjson.loads(answered.body)["error"]["type"] == "invalid_request_error"
