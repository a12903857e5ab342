"""`usher doctor`: what would keep Usher from working, said before it happens."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from proxy import cli
from proxy.commands.doctor import (
    check_folder,
    check_models,
    check_package,
    check_port,
    check_store,
    check_upstream,
)
from proxy.settings import Settings, Upstream
from tests.fakes.redisserver import RedisServer


class Models(BaseHTTPRequestHandler):
    """Answers GET /v1/models when the key is right."""

    def do_GET(self) -> None:
        known = self.headers["authorization"] == "Bearer right"
        self.send_response(200 if known else 401)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[str]:
    """An upstream on a free port; its base URL."""
    with HTTPServer(("127.0.0.1", 0), Models) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def settings_of(url: str | None, key: str | None = None) -> Upstream:
    """An upstream's settings."""
    return Upstream.model_validate({"base_url": url, "api_key": key})


@pytest.mark.parametrize(("key", "state"), [("right", "ok"), ("wrong", "warn"), (None, "warn")])
def test_the_upstream_is_asked(upstream: str, key: str | None, state: str) -> None:
    """A key that works is ok, one that is refused is a warning, and neither is printed."""
    finding = check_upstream(settings_of(upstream, key))
    assert finding.state == state
    assert not key or key not in finding.detail


def test_an_upstream_that_is_away_is_a_failure() -> None:
    """Nothing listens there: said with the address, without its password."""
    finding = check_upstream(settings_of("http://me:sesame@127.0.0.1:9/v1"))
    assert finding.state == "fail"
    assert finding.detail == "http://***:***@127.0.0.1:9/v1: ConnectError"


def test_the_stand_in_is_a_warning() -> None:
    """Without an upstream Usher works, but with no real model behind it."""
    assert check_upstream(settings_of(None)).state == "warn"


def test_a_taken_port_is_a_warning() -> None:
    """Another process on the port may be Usher itself."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = Settings.model_validate({"server": {"port": taken.getsockname()[1]}})
        assert check_port(settings).state == "warn"
    assert check_port(Settings.model_validate({"server": {"port": 0}})).state == "ok"


def test_a_data_folder_that_is_a_file_is_a_failure(tmp_path: Path) -> None:
    """A folder that can't be made is found before the first row is lost."""
    (tmp_path / "file").touch()
    assert check_folder(tmp_path / "file" / "data").state == "fail"
    assert check_folder(tmp_path / "new" / "data").state == "ok"


def test_a_missing_extra_is_a_warning() -> None:
    """What is not installed costs a feature, not the start."""
    assert check_package("no_such_package", "colours").detail == "missing: no colours"


def test_findings_as_data(
    upstream: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--json lists what was looked at; a failure makes the exit code 1."""
    monkeypatch.setenv("OPENAI_BASE_URL", upstream)
    monkeypatch.setenv("OPENAI_API_KEY", "right")
    monkeypatch.setenv("USHER_SERVER__PORT", "0")
    assert cli.run(["doctor", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    states = {finding["what"]: finding["state"] for finding in data["findings"]}
    assert data["ok"]
    assert states["upstream"] == "ok"


def test_a_broken_configuration_is_a_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `check` would say is the doctor's first failure."""
    monkeypatch.setenv("USHER_CONFIG", "/no/such.yaml")
    assert cli.run(["doctor"]) == 1
    assert "/no/such.yaml: no such file or directory" in capsys.readouterr().out


def test_a_judge_without_a_key_is_a_warning() -> None:
    """It would be left out at the start, with one line in the log."""
    values = {
        "classification": {"enabled": True, "providers": {"typesafe": {"preset": "typesafe"}}}
    }
    (finding,) = check_models(Settings.model_validate(values), {})
    assert (finding.what, finding.state) == ("judge", "warn")
    assert finding.detail.startswith("typesafe: no key")


def test_a_judge_that_does_not_exist_is_a_failure() -> None:
    """The start would end there."""
    settings = Settings.model_validate({"classification": {"enabled": True, "backend": "nobody"}})
    (finding,) = check_models(settings, {})
    assert finding.state == "fail"


def test_a_shared_store_is_asked(redis_server: RedisServer) -> None:
    """Where one is configured; its password is not printed."""
    url = redis_server.url.replace("//", "//:s3cret@")
    settings = Settings.model_validate({"state": {"url": redis_server.url}})
    assert check_store(settings).state == "ok"
    redis_server.stop()
    finding = check_store(Settings.model_validate({"state": {"url": url}}))
    assert finding.state == "fail"
    assert "s3cret" not in finding.detail
