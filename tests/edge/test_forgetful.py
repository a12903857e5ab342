"""Memory's URLs where memory is off."""

import orjson
import pytest

from proxy.edge.forgetful import no_memory_routes
from proxy.edge.routes import Extras, build_routes
from proxy.plan.identity import Caller
from tests.edge.driver import KeyBook, Rig, ask, refuse_chat

pytestmark = pytest.mark.anyio
KEYS = KeyBook({"user": Caller(tenant="acme", key="user")})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/usher/memory"),
        ("DELETE", "/usher/memory?confirm=everything"),
        ("PATCH", "/usher/memory/preferences"),
        ("PUT", "/usher/memory/city"),
        ("POST", "/usher/memory/city/rename"),
        ("GET", "/usher/memory/page?token=x"),
    ],
)
async def test_who_asks_for_memories_hears_that_there_are_none(method: str, path: str) -> None:
    """Not that the URL is wrong: the setting that would help is named."""
    rig = Rig(keys=KEYS)
    app = build_routes(rig.edge, refuse_chat, rig.forward, Extras(no_memory_routes(rig.edge)))
    answered = await ask(app, method, path, b"", [("authorization", "Bearer user")])
    error = orjson.loads(answered.body)["error"]
    assert (answered.status, error["code"]) == (404, "memory_off")
    assert error["message"] == "Memory is off: set memory.mode."
