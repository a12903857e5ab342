"""Uploads of keys that may use some models, and of providers that are chosen by model."""

from collections.abc import AsyncIterator

import pytest

from proxy.keys.key import GatewayKey, new_secret
from proxy.plan.identity import Caller
from proxy.upstream.transport import Prepared, UpstreamRequest
from tests.edge.driver import JSON_TYPE, Answered, Client, KeyBook, Rig
from tests.fakes.transport import FakeTransport

pytestmark = pytest.mark.anyio

_HEADERS = [
    ("content-type", "multipart/form-data; boundary=XX"),
    ("authorization", "Bearer s"),
    ("transfer-encoding", "chunked"),
]
_FILE = b'--XX\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nsound\r\n'
_END = b"--XX--\r\n"


def _model(name: bytes) -> bytes:
    return b'--XX\r\nContent-Disposition: form-data; name="model"\r\n\r\n' + name + b"\r\n"


class Taking(FakeTransport):
    """Takes every body to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[bytes] = []

    async def send(self, request: UpstreamRequest) -> Prepared:
        self.sent.append(request)
        body = request.body
        if isinstance(body, AsyncIterator):
            body = b"".join([piece async for piece in body])
        self.bodies.append(body or b"")
        return Prepared(200, JSON_TYPE, b"{}")


def _caller(*models: str) -> Caller:
    grant = GatewayKey("alice", new_secret()[1], 0.0, models=models)
    return Caller(key="alice", grant=grant)


async def _ask(
    *pieces: bytes, models: tuple[str, ...] = ("whisper*",), url: str = "/v1/audio/transcriptions"
) -> tuple[Answered, Taking]:
    transport = Taking()
    rig = Rig(transport=transport, keys=KeyBook({"s": _caller(*models)}))
    answered = await Client(*pieces).ask(rig.app, "POST", url, _HEADERS)
    return answered, transport


@pytest.mark.parametrize(
    "pieces",
    [
        (_model(b"whisper-1") + _FILE + _END,),
        (_model(b"whisper-1"), _FILE, _END),
        (_FILE, _model(b"whisper-1"), _END),
    ],
)
async def test_a_form_of_an_allowed_model_goes_up_untouched(pieces: tuple[bytes, ...]) -> None:
    """Whether the model stands before the file or after it."""
    answered, transport = await _ask(*pieces)
    assert answered.status == 200
    assert transport.bodies == [b"".join(pieces)]


async def test_another_model_reaches_no_upstream() -> None:
    """Nor does a form without one, or one that nobody can read."""
    for pieces in ((_model(b"gpt-4o"), _FILE, _END), (_FILE, _END), (b"no form",)):
        answered, transport = await _ask(*pieces)
        assert (answered.status, transport.sent) == (403, [])


async def test_a_second_model_ends_the_upload() -> None:
    """It would win at some upstreams; by then the rest is not sent."""
    answered, transport = await _ask(_model(b"whisper-1"), _FILE, _model(b"gpt-4o"), _END)
    assert answered.status == 400
    assert transport.bodies == []


async def test_files_have_no_model() -> None:
    """They may be stored; what uses them names its model then."""
    for url in ("/v1/files", "/v1/uploads/u1/parts"):
        answered, transport = await _ask(_FILE, _END, url=url)
        assert answered.status == 200
        assert transport.bodies == [_FILE + _END]
    assert (await _ask(_model(b"gpt-4o"), _END, url="/v1/files"))[0].status == 403


async def test_a_form_goes_to_the_provider_of_its_model() -> None:
    """As every other request does; a form that cannot be read goes to the default upstream."""
    provider = {"name": "ears", "models": ["whisper*"], "base_url": "http://ears.test/v1"}
    transport = Taking()
    rig = Rig(transport=transport, overrides={"providers": [provider]})
    for pieces in ((_FILE, _model(b"whisper-1"), _END), (_FILE, _END), (b"--XX-", b"no form")):
        url = "/v1/audio/transcriptions"
        assert (await Client(*pieces).ask(rig.app, "POST", url, _HEADERS[::2])).status == 200
    hosts = [request.url.split("/")[2] for request in transport.sent]
    assert hosts == ["ears.test", "up.test", "up.test"]
