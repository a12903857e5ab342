"""The demo's live gateway."""

import socket
from pathlib import Path

import httpx
import pytest

from proxy.demo.gateway import serve_gateway
from proxy.errors import ConfigError
from proxy.settings import Deferral

ASK = {"model": "standin", "messages": [{"role": "user", "content": "hello"}]}


@pytest.mark.parametrize("defer", [False, True])
def test_it_answers_on_loopback_and_keeps_what_the_upstream_received(
    tmp_path: Path, *, defer: bool
) -> None:
    """Over real HTTP, with the model inside."""
    with serve_gateway(tmp_path, Deferral(mode="on" if defer else "off")) as live:
        reply = httpx.post(f"{live.url}/chat/completions", json=ASK)
    assert reply.json()["choices"][0]["message"]["content"] == "You said: hello"
    assert [received.json for received in live.upstream.received] == [ASK]


def test_it_is_gone_afterwards(tmp_path: Path) -> None:
    """Nothing listens any more."""
    with serve_gateway(tmp_path, Deferral(mode="off")) as live:
        port = httpx.URL(live.url).port
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port or 0)) != 0


def test_a_gateway_that_cannot_start_says_so(tmp_path: Path) -> None:
    """Instead of waiting for it."""
    broken = Deferral()
    (tmp_path / "keys.json").write_text("no keys")
    with pytest.raises(ConfigError, match=r"keys\.file"), serve_gateway(tmp_path, broken):
        pass
