"""Probes: what an orchestrator and Prometheus see."""

import pytest

from tests.edge.driver import CHAT, Rig, ask

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("path", ["/livez", "/health/liveliness", "/health/liveness"])
async def test_liveness_needs_no_key(path: str) -> None:
    """The process says that it lives, under LiteLLM's names, too."""
    answered = await ask(Rig().app, "GET", path)
    assert (answered.status, answered.body) == (200, b'{"status":"ok"}')


@pytest.mark.parametrize("path", ["/readyz", "/health/readiness"])
async def test_readiness_ends_with_draining(path: str) -> None:
    """A draining gateway is alive but asks for no new requests."""
    rig = Rig()
    assert (await ask(rig.app, "GET", path)).status == 200
    await rig.gate.drain(0)
    answered = await ask(rig.app, "GET", path)
    assert (answered.status, answered.body) == (503, b'{"status":"draining","in_flight":0}')
    assert (await ask(rig.app, "GET", "/livez")).status == 200


async def test_metrics_are_exposed() -> None:
    """Prometheus finds the counters of this gateway."""
    rig = Rig()
    await ask(rig.app, "POST", CHAT, b"{}")
    answered = await ask(rig.app, "GET", "/metrics")
    assert answered.headers["content-type"].startswith("text/plain")
    assert b'usher_requests_total{endpoint="chat",status="200"} 1.0' in answered.body
    assert b"usher_in_flight_requests 0.0" in answered.body
