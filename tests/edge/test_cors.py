"""Pages of allowed origins may call the gateway, and no others."""

import pytest

from proxy.errors import Unauthorized
from proxy.plan.exchange import ChatRequest, Reply
from tests.edge.driver import CHAT, Rig, ask

pytestmark = pytest.mark.anyio

_ORIGIN = ("origin", "https://app.example")


async def _refuse(_: ChatRequest) -> Reply:
    raise Unauthorized("no key")


def _rig(*origins: str) -> Rig:
    return Rig(chat=_refuse, overrides={"server": {"cors_origins": origins}})


async def test_a_preflight_needs_no_key() -> None:
    """Requested headers are reflected, whatever an SDK calls them."""
    asked = "authorization,content-type,x-stainless-os"
    headers = [
        _ORIGIN,
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", asked),
    ]
    answered = await ask(_rig("https://app.example").app, "OPTIONS", CHAT, None, headers)
    assert answered.status == 200
    assert answered.headers["access-control-allow-origin"] == "https://app.example"
    assert answered.headers["access-control-allow-headers"] == asked


async def test_errors_can_be_read_by_the_page() -> None:
    """A 401 carries the same headers, and the request id is exposed."""
    answered = await ask(_rig("https://app.example").app, "POST", CHAT, b"{}", [_ORIGIN])
    assert answered.status == 401
    assert answered.headers["access-control-allow-origin"] == "https://app.example"
    assert "x-request-id" in answered.headers["access-control-expose-headers"]


@pytest.mark.parametrize("origins", [(), ("https://other.example",)])
async def test_other_pages_are_not_told_that_they_may(origins: tuple[str, ...]) -> None:
    """Without configuration no origin is allowed."""
    answered = await ask(_rig(*origins).app, "POST", CHAT, b"{}", [_ORIGIN])
    assert "access-control-allow-origin" not in answered.headers
