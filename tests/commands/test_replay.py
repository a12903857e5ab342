"""`usher replay`: recorded traffic as an upstream, for people and for programs."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from proxy import cli
from proxy.upstream.cassette import load_cassette
from tests.commands.conftest import Launch

FOLDER = Path(__file__).parents[2] / "cassettes" / "test_chat"


def _start(*words: str, name: str = "test_other_routes.yaml") -> subprocess.Popen[str]:
    file = str(FOLDER / name)
    command = [sys.executable, "-m", "proxy.cli", "replay", file, "--port", "0", *words]
    return subprocess.Popen(
        command, env={**os.environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _get(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=30) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_it_answers_what_was_recorded() -> None:
    """One line per request, and what is left over makes a strict run fail."""
    with _start("--json", "--strict") as process:
        assert process.stdout is not None
        began = json.loads(process.stdout.readline())
        assert began["interactions"] == 2
        assert began["url"].endswith("/v1")
        assert _get(f"{began['url']}/models") == 200
        assert json.loads(process.stdout.readline())["played"]
        assert _get(f"{began['url']}/models") == 404
        assert "played already" in json.loads(process.stdout.readline())["reason"]
        process.send_signal(signal.SIGTERM)
        ended = json.loads(process.stdout.read())
        assert ended == {"played": 1, "unplayed": 1, "not_recorded": 1}
        assert process.wait(timeout=30) == 1


def test_usher_in_front_of_it(launch: Launch, tmp_path: Path) -> None:
    """The recorded request gets the recorded answer through Usher, and nothing is left over."""
    cassette = load_cassette(FOLDER / "test_plain_answer.yaml")
    (recorded,) = cassette.interactions
    with _start("--json", "--strict", name="test_plain_answer.yaml") as process:
        assert process.stdout is not None
        config = tmp_path / "usher.yaml"
        config.write_text(
            f"upstream:\n  base_url: {json.loads(process.stdout.readline())['url']}\n"
        )
        request = urllib.request.Request(
            f"{launch('--config', str(config)).url}{recorded.target}",
            data=recorded.sent,
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            assert reply.read() == recorded.answer
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def test_it_tells_people_what_to_do_with_it() -> None:
    """The line that starts Usher with it."""
    with _start() as process:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(2)]
        assert "OPENAI_BASE_URL=http://127.0.0.1:" in lines[1]
        process.send_signal(signal.SIGINT)
        assert "0 of 2 played" in process.stderr.read()
        assert process.wait(timeout=30) == 0


def test_what_is_no_cassette_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything listens."""
    assert cli.run(["replay", "/nowhere.yaml"]) == 1
    assert capsys.readouterr().err == "usher: /nowhere.yaml: no such file or directory\n"
