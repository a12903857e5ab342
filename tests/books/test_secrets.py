"""What people say and what opens doors is nowhere in the books, the logs or the metrics."""

from pathlib import Path

import orjson
import pytest

from proxy.app import build_gateway
from proxy.keys.issue import new_key
from proxy.settings import Settings
from proxy.upstream.transport import Prepared, UpstreamRequest
from proxy.wire import JSONObject
from tests.edge.driver import ask
from tests.fakes.transport import FakeTransport
from tests.tools.samples import function
from tests.turns import JSON_TYPE, call, completion, search

pytestmark = pytest.mark.anyio

SAID = "marzipan"
TEXT: JSONObject = {"type": "string"}
HIDDEN = (
    "sk-upstream-f00d", "sk-caller-beef", "system-walnut", "user-walnut", "answer-walnut",
    "argument-walnut", "result-walnut", "description-walnut", "error-walnut", "query-walnut",
)  # fmt: skip
"""Each planted in one place, and to be found in none of ours."""


def upstream(sent: UpstreamRequest) -> Prepared:
    assert isinstance(sent.body, bytes)
    body = orjson.loads(sent.body)
    if body["model"] == "broken":
        return Prepared(500, JSON_TYPE, b'{"error":{"message":"error-walnut"}}')
    hidden_rounds = sum(message["role"] == "tool" for message in body["messages"])
    if hidden_rounds == 1:
        return completion(None, [search("argument-walnut")])
    return completion("answer-walnut")


def chat(model: str) -> JSONObject:
    called = call("post", {"text": "argument-walnut"}, "c")
    tools = [function(f"tool_{n}", "description-walnut", a=TEXT) for n in range(20)]
    return {
        "model": model,
        "user": "u1",
        "messages": [
            {"role": "system", "content": "system-walnut"},
            {"role": "user", "content": f"user-walnut {SAID}"},
            {"role": "assistant", "tool_calls": [called]},
            {"role": "tool", "tool_call_id": "c", "content": "result-walnut"},
        ],
        "tools": tools,
    }


@pytest.mark.parametrize("level", ["debug", "info"])
async def test_a_run_leaves_no_secret(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], level: str
) -> None:
    """Answers, errors, searches and questions of an admin, with everything planted."""
    settings = Settings.model_validate({
        "upstream": {"base_url": "http://up.test/v1", "api_key": "sk-upstream-f00d", "retries": 0},
        "deferral": {"min_tools": 1, "small_chars": 0},
        "log": {"level": level, "format": "json"},
    })  # fmt: skip
    gateway = build_gateway(settings, tmp_path, {"openai": FakeTransport(answer=upstream)})
    await gateway.ledger.start()
    headers = [("authorization", "Bearer sk-caller-beef"), ("host", "localhost")]
    for model in ("m", "broken"):
        body = orjson.dumps(chat(model))
        await ask(gateway.app, "POST", "/v1/chat/completions?q=query-walnut", body, headers)
    requests = await ask(gateway.app, "GET", "/usher/requests", headers=headers)
    newest = orjson.loads(requests.body)["requests"][0]
    timeline = await ask(gateway.app, "GET", f"/usher/requests/{newest['id']}", headers=headers)
    usage = await ask(gateway.app, "GET", "/usher/usage", headers=headers)
    metrics = await ask(gateway.app, "GET", "/metrics")
    await gateway.ledger.aclose()
    written = b"".join(file.read_bytes() for file in files(tmp_path))
    logs = "".join(capfd.readouterr())
    assert b"tool_1" in written, "the plan is in the books, so the search looked at the right file"
    shown = requests.body + timeline.body + usage.body + metrics.body + logs.encode() + written
    assert [secret for secret in (*HIDDEN, SAID) if secret.encode() in shown] == []


def files(folder: Path) -> list[Path]:
    found = [path for path in folder.rglob("*") if path.is_file()]
    assert found
    return found


def test_a_gateway_key_is_in_no_file(tmp_path: Path) -> None:
    """Only its hash."""
    secret = new_key(tmp_path / "keys.json", lambda key: key, "alice")
    assert secret.encode() not in b"".join(file.read_bytes() for file in files(tmp_path))
