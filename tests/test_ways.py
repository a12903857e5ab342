"""Transports are loaded when they are needed."""

import subprocess
import sys

import pytest

from proxy.settings import Settings
from proxy.upstream.aiohttp_transport import AiohttpTransport
from proxy.upstream.httpx_transport import HttpxTransport
from proxy.upstream.standin import StandinTransport
from proxy.upstream.transport import Transport, UpstreamRequest
from proxy.ways import LateTransport, load_transport, make_ways
from tests.fakes.transport import FakeTransport
from tests.turns import completion

pytestmark = pytest.mark.anyio

_REQUEST = UpstreamRequest("POST", "http://up.test", [], b"{}", 1.0, 1.0)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("aiohttp", AiohttpTransport), ("httpx", HttpxTransport), ("standin", StandinTransport)],
)
async def test_a_transport_is_known_by_name(name: str, kind: type[Transport]) -> None:
    """The setting's word means that class."""
    assert isinstance(load_transport(name), kind)


async def test_a_late_transport_is_made_once() -> None:
    """By its first request; one that was never needed has nothing to close."""
    made: list[FakeTransport] = []

    def make() -> Transport:
        made.append(FakeTransport(answer=lambda _: completion("Hi")))
        return made[-1]

    late = LateTransport(make)
    await late.aclose()
    assert made == []
    await late.send(_REQUEST)
    await late.send(_REQUEST)
    await late.aclose()
    assert len(made) == 1
    assert made[0].closed


async def test_every_kind_of_target_has_a_way() -> None:
    """With and without a configured upstream."""
    settings = Settings.model_validate({"upstream": {"base_url": "http://127.0.0.1:1/v1"}})
    for ways in (make_ways(Settings()), make_ways(settings)):
        assert set(ways) == {"openai", "litellm", "standin"}
    assert isinstance(make_ways(settings)["openai"], AiohttpTransport)


async def test_ways_can_be_replaced() -> None:
    """Whoever composes a gateway of other parts brings the way that they know."""
    fake = FakeTransport(answer=lambda _: completion("Hi"))
    assert make_ways(Settings(), {"openai": fake})["openai"] is fake


def test_start_up_loads_none_of_the_others() -> None:
    """Neither httpx nor the stand-in is imported by composing a gateway."""
    code = (
        "import sys, proxy.app;"
        "late = ('httpx', 'proxy.upstream.standin.model');"
        "print([name for name in late if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
