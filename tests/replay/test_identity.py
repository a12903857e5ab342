"""Where nothing is intercepted, bytes up are the client's and bytes down are the upstream's."""

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.settings import Settings
from tests.fakes.gateway import serve_gateway
from tests.fakes.scripted import (
    CUT,
    Script,
    ScriptedUpstream,
    Step,
    Wait,
    chunk,
    head,
    last_chunk,
    reply,
)

EXAMPLES = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Echo:
    """An upstream with a loop and a thread of its own: keeps requests, gives `script`."""

    def __init__(self) -> None:
        self.script: Script = ()
        self.upstream = ScriptedUpstream(answer=lambda _: self.script)

    @contextmanager
    def serve(self) -> Iterator[str]:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="upstream")
        thread.start()
        asyncio.run_coroutine_threadsafe(self.upstream.__aenter__(), loop).result()
        try:
            yield self.upstream.url
        finally:
            ended = self.upstream.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(ended, loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


@dataclass(frozen=True, slots=True)
class Answer:
    """What an upstream says, and how it frames it."""

    status: int
    content_type: str
    body: bytes
    pieces: tuple[bytes, ...]
    framing: str

    def script(self) -> Script:
        kind = ("Content-Type", self.content_type)
        if self.framing == "length":
            return [reply(self.status, self.body, kind)]
        if self.framing == "close":
            steps: list[Step] = [head(self.status, kind, ("Connection", "close"))]
            for piece in self.pieces:
                steps += [piece, Wait(0)]
            return [*steps, CUT]
        steps = [head(self.status, kind, ("Transfer-Encoding", "chunked"))]
        for piece in self.pieces:
            steps += [chunk(piece), Wait(0)]
        return [*steps, last_chunk()]


@dataclass(frozen=True, slots=True)
class Stage:
    """A running gateway in front of the echo."""

    echo: Echo
    port: int

    def check(self, path: str, body: bytes, answer: Answer) -> None:
        """Send a body through the gateway; both bodies must arrive byte for byte."""
        self.echo.script = answer.script()
        self.echo.upstream.requests.clear()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        headers = {"Content-Type": "application/json", "Authorization": "Bearer caller"}
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            got = (response.status, response.getheader("content-type"), response.read())
        finally:
            connection.close()
        assert got == (answer.status, answer.content_type, answer.body)
        [received] = self.echo.upstream.requests
        assert received.body == body
        assert received.header("authorization") == "Bearer caller"


@pytest.fixture(scope="module", params=["aiohttp", "httpx"])
def transport_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module", params=["on", "off"])
def stage(
    request: pytest.FixtureRequest,
    transport_name: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, Stage]]:
    """A gateway whose deferral is on or off."""
    echo = Echo()
    with echo.serve() as url:
        chosen = Settings.model_validate({
            "upstream": {"base_url": f"{url}/v1", "transport": transport_name},
            "deferral": {"mode": request.param},
            "prediction": {"ranker": "lexical"},
            "log": {"level": "error"},
        })  # fmt: skip
        with serve_gateway(chosen, tmp_path_factory.mktemp("data")) as port:
            yield request.param, Stage(echo, port)


SPACE = st.sampled_from([b"", b"", b" ", b"\n  ", b"\r\n\t"])
ODD = st.sampled_from([
    b"null", b"true", b"0", b"-0", b"1.0", b"1e3", b"1E400", b"18446744073709551617",
    b'"\\ud800"', b'"\\u00fc\\/"', '"ü東🙂"'.encode(), b'""', b"{}", b"[ ]", b'{"a":1,"a":2}',
])  # fmt: skip
TEXT = st.text(max_size=20).map(
    lambda text: json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")
)
VALUES = st.recursive(
    ODD | TEXT,
    lambda inner: st.lists(inner, max_size=3).map(lambda items: b"[" + b",".join(items) + b"]"),
    max_leaves=5,
)
"""JSON as text: what a parser would change must survive."""


@st.composite
def objects(draw: st.DrawFn, *required: tuple[bytes, st.SearchStrategy[bytes]]) -> bytes:
    """An object with these keys among unknown ones, in any order, spaced anyhow."""
    names = st.sampled_from([b'"x"', b'"stream_options"', b'"user"', b'"\\u0078"', '"ü"'.encode()])
    pairs = [(b'"' + name + b'"', draw(values)) for name, values in required]
    pairs += draw(st.lists(st.tuples(names, VALUES), max_size=3))
    pairs = draw(st.permutations(pairs))
    parts = [draw(SPACE) + name + draw(SPACE) + b":" + draw(SPACE) + value for name, value in pairs]
    return draw(SPACE) + b"{" + b",".join(parts) + draw(SPACE) + b"}" + draw(SPACE)


def tools(count: int) -> st.SearchStrategy[bytes]:
    """An array of that many tools, each spaced anyhow."""
    tool = st.tuples(SPACE, st.integers(0, 10**6), ODD).map(
        lambda part: b'{"type":"function",%b"function":{"name":"t%d","x":%b}}' % part
    )
    return st.lists(tool, min_size=count, max_size=count).map(
        lambda items: b"[" + b",".join(items) + b"]"
    )


MODEL = (b"model", st.just(b'"m"'))
STREAM = (b"stream", st.sampled_from([b"true", b"false", b"null"]))
MESSAGES = (
    b"messages",
    TEXT.map(lambda text: b'[{"role":"user","content":%b}]' % text) | VALUES,
)
WITHOUT_TOOLS = objects(MODEL, STREAM, MESSAGES)
FEW_TOOLS = st.integers(0, 8).flatmap(
    lambda n: objects(MODEL, STREAM, MESSAGES, (b"tools", tools(n)))
)
MANY_TOOLS = objects(MODEL, STREAM, MESSAGES, (b"tools", tools(20)))
NO_CHAT = (
    st.binary(min_size=1, max_size=60)
    | VALUES
    | objects(MODEL, (b"tools", VALUES))
    | objects(
        MODEL,
        MESSAGES,
        (b"tools", st.lists(VALUES, max_size=20).map(lambda v: b"[%b]" % b",".join(v))),
    )
)
PATHS = st.sampled_from([
    "/v1/chat/completions", "/chat/completions", "//v1//chat/completions", "/v1/embeddings",
    "/v1/responses", "/v1/files/a%2Fb?x[]=1",
])  # fmt: skip
FRAMES = st.sampled_from([
    b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"x"}}]}\n\n', b"data:[DONE]\r\n\r\n",
    'data: {"choices":[{"delta":{"content":"ü🙂"}}],"usage":null}\n\n'.encode(), b": ping\n\n",
    b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n', b"id: 7\n\n",
    b"event: x\rdata: a\rdata: b\r\r", b"data: \n\n", b"retry: 1\n\n", b"data: {broken\n\n",
    b'event: error\ndata: {"error":{"message":"m"}}\n\n', b"data: unterminated", b"\xff\xfe\n",
])  # fmt: skip


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """JSON, events or anything, cut anywhere, framed every way."""
    stream = draw(st.booleans())
    if stream:  # a stream without its end would rightly be reported as cut
        body = draw(st.lists(FRAMES, max_size=6).map(b"".join)) + b"\n\ndata: [DONE]\n\n"
    else:
        body = draw(VALUES | st.binary())
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=5)))
    edges = [0, *cuts, len(body)]
    pieces = [body[start:end] for start, end in pairwise(edges)]
    return Answer(
        status=draw(st.sampled_from([200, 200, 400, 429, 500])),
        content_type="text/event-stream; charset=utf-8" if stream else "application/json",
        body=body,
        pieces=tuple(filter(None, pieces)),
        framing=draw(st.sampled_from(["length", "chunks", "close"])),
    )


@EXAMPLES
@given(path=PATHS, body=WITHOUT_TOOLS | FEW_TOOLS | NO_CHAT, answer=answers())
def test_untouched_requests_are_byte_identical(
    stage: tuple[str, Stage], path: str, body: bytes, answer: Answer
) -> None:
    """No tools, few tools or no chat request at all: nothing changes, deferral on or off."""
    stage[1].check(path, body, answer)


@EXAMPLES
@given(body=MANY_TOOLS, answer=answers())
def test_deferral_off_is_byte_identical(
    stage: tuple[str, Stage], body: bytes, answer: Answer
) -> None:
    """With deferral off, a large catalogue goes through as it is."""
    mode, running = stage
    if mode == "off":
        running.check("/v1/chat/completions", body, answer)
