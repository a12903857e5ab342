"""`usher serve`: it says where it listens, answers there, and refuses what would be unsafe."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from proxy import cli
from proxy.commands.serve import Flags, is_loopback, refuse_open_address
from proxy.settings import Settings
from tests.commands.conftest import Launch


def test_it_serves_until_it_is_told_to_stop(launch: Launch) -> None:
    """The announced address answers, and SIGTERM ends it with exit code 0."""
    running = launch()
    with urllib.request.urlopen(f"{running.url}/readyz", timeout=30) as reply:
        assert json.load(reply)["status"] == "ok"
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(timeout=60) == 0


def test_the_stand_in_answers_a_chat(launch: Launch) -> None:
    """Without any configuration a chat request is answered, offline."""
    body = {"model": "stand-in", "messages": [{"role": "user", "content": "hello"}]}
    request = urllib.request.Request(
        f"{launch().url}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        assert json.load(reply)["choices"][0]["message"]["content"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_an_open_address_needs_a_word(capsys: pytest.CaptureFixture[str], host: str) -> None:
    """Listening beyond this machine without keys is refused with the way out."""
    assert cli.run(["serve", "--host", host]) == 1
    assert capsys.readouterr().err == (
        f"usher: server.host: {host} is open to others and no key is asked for; "
        "make one with `usher key new`, use a loopback address, or say --insecure\n"
    )


@pytest.mark.parametrize(("keyed", "insecure"), [(True, False), (False, True)])
def test_an_open_address_with_keys_or_a_word_is_fine(*, keyed: bool, insecure: bool) -> None:
    """Once callers need a key, or the operator insists, any address will do."""
    values = {"server": {"host": "0.0.0.0", "insecure": insecure}}
    refuse_open_address(Settings.model_validate(values), keyed=keyed)


def test_loopback_is_recognised() -> None:
    """Every spelling of this machine needs no extra word."""
    assert all(map(is_loopback, ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"]))


def test_a_wrong_flag_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A value that the setting refuses is reported under the flag's name."""
    assert cli.run(["serve", "--port", "99999"]) == 1
    assert capsys.readouterr().err == (
        "usher: --port: server.port: must be less than or equal to 65535\n"
    )


def test_a_ledger_that_cannot_be_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A data folder that is a file stops the start before anything listens."""
    (tmp_path / "data").write_text("")
    monkeypatch.setenv("USHER_LEDGER__URL", f"sqlite:///{tmp_path}/data/usher.db")
    assert cli.run(["serve", "--port", "0"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("usher: ledger.url: cannot write ")
    assert told.count("\n") == 1


def test_flags_that_are_not_given_change_nothing() -> None:
    """Only what was said wins over the configuration."""
    assert list(Flags(port=1).entries()) == [("server", "port")]


def test_capturing_is_a_matter_of_prediction() -> None:
    """The flag sets `prediction.capture`."""
    entry = Flags(capture="captured.jsonl").entries()["prediction", "capture"]
    assert entry.value == "captured.jsonl"


def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    """When the port is in use the start fails at once and says so."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "proxy.cli", "serve", "--port", port]
        environ = {"PATH": os.defpath, "USHER_DATA": str(tmp_path)}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"usher: server: cannot listen on 127.0.0.1:{port}: ")
    assert len(done.stderr.splitlines()) == 1
