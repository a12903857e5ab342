"""An OpenAI client in front of a running gateway in front of recorded answers.

`pytest tests/replay --record-mode=rewrite` records anew, from the stand-in model on loopback.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from proxy.settings import Settings
from proxy.upstream.standin import StandinTransport
from proxy.upstream.transport import UpstreamRequest
from tests.fakes.gateway import serve_gateway
from tests.fakes.scripted import Received, Script, ScriptedUpstream, reply
from tests.replay.cassettes import CUTS, FOLDER, HOME, Player, make_recorder

CALLERS_KEY = "sk-caller-secret"
UPSTREAM_KEY = "sk-upstream-secret"


WAYS = [("httpx", "cassette"), *product(("aiohttp", "httpx"), CUTS)]
"""The cassette itself, which vcrpy plays to httpx alone; and its bodies, cut every way, through a
real socket to both."""


@pytest.fixture(params=WAYS, ids="-".join)
def way(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A transport, and what feeds it."""
    chosen: tuple[str, str] = request.param
    return chosen


@pytest.fixture
def transport_name(way: tuple[str, str]) -> str:
    """The way to the upstream."""
    return way[0]


@pytest.fixture
def feed(way: tuple[str, str]) -> str:
    """What answers there."""
    return way[1]


@pytest.fixture
def record(request: pytest.FixtureRequest, feed: str) -> bool:
    """Whether to record anew; that is done once, from the stand-in model."""
    asked: bool = request.config.getoption("--record-mode") != "none"
    if asked and feed != "cassette":
        pytest.skip("recorded once")
    return asked


@pytest.fixture
def cassette(request: pytest.FixtureRequest, *, record: bool) -> Path:
    """The recording of the running test."""
    module, test = request.node.path.stem, request.node.originalname
    path: Path = FOLDER / module / f"{test}.yaml"
    if record:
        path.unlink(missing_ok=True)
    return path


@pytest.fixture
async def client(
    transport_name: str, feed: str, cassette: Path, tmp_path: Path, *, record: bool
) -> AsyncIterator[AsyncOpenAI]:
    """A client of the gateway; every recorded exchange must be used by the end."""
    async with AsyncExitStack() as stack:
        player = None
        base_url = HOME
        if record:
            upstream = await stack.enter_async_context(ScriptedUpstream(answer=ask_standin))
            base_url = upstream.url
        elif feed != "cassette":
            player = Player(cassette, CUTS[feed])
            upstream = await stack.enter_async_context(ScriptedUpstream(answer=player.answer))
            base_url = upstream.url
        settings = make_settings(f"{base_url}/v1", transport_name)
        port = stack.enter_context(serve_gateway(settings, tmp_path))
        played: Any = None
        if player is None:
            recorder = make_recorder(port, record=record)
            played = stack.enter_context(recorder.use_cassette(str(cassette)))
        url = f"http://127.0.0.1:{port}/v1"
        async with AsyncOpenAI(base_url=url, api_key=CALLERS_KEY, max_retries=0) as chosen:
            yield chosen
        if player is not None:
            assert player.unplayed == []
            assert player.altered == []
        elif not record:
            assert played.all_played, "recorded exchanges were not used"


def make_settings(base_url: str, transport: str) -> Settings:
    """Deferral from the first tool on, ranked by words."""
    return Settings.model_validate(
        {
            "upstream": {"base_url": base_url, "api_key": UPSTREAM_KEY, "transport": transport},
            "deferral": {"small_chars": 0},
            "prediction": {"ranker": "lexical"},
            "log": {"level": "error"},
        }
    )


async def ask_standin(received: Received) -> Script:
    """The stand-in model's answer, as a server would send it."""
    request = UpstreamRequest(
        received.method, f"{HOME}{received.target}", [], received.body or None, 1.0, 10.0
    )
    response = await StandinTransport().send(request)
    fields = [(name.decode(), value.decode()) for name, value in response.headers]
    secrets = [("Set-Cookie", "session=secret"), ("OpenAI-Organization", "secret")]
    return [reply(response.status, await response.read(), *fields, *secrets)]
