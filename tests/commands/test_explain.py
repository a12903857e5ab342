"""`usher explain`: the plan of a request, before anything is sent."""

import io
import json
from pathlib import Path

import pytest

from proxy import cli
from proxy.wire import JSONObject


def make_tool(name: str) -> JSONObject:
    """A function with a schema of a few hundred characters."""
    text = {"type": "string", "description": f"What {name} needs to know. " * 8}
    parameters = {"type": "object", "properties": {"text": text}, "required": ["text"]}
    function = {"name": name, "description": f"Runs {name}.", "parameters": parameters}
    return {"type": "function", "function": function}


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    """A chat request with forty tools, one of which the message names."""
    names = [f"calendar_job_{number}" for number in range(39)] + ["weather_now"]
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "call weather_now for Paris"}],
        "tools": [make_tool(name) for name in names],
    }
    path = tmp_path / "request.json"
    path.write_text(json.dumps(body))
    return path


def test_each_tool_has_a_fate_and_a_reason(
    request_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tool that the message names is predicted, the others are deferred, each with why."""
    assert cli.run(["explain", str(request_file), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    fates = {row["tool"]: row["fate"] for row in plan["decisions"]}
    assert (plan["bypass"], plan["tools"]["sent_by_client"]) == (None, 40)
    assert "weather_now" in plan["tools"]["predicted"]
    assert fates["calendar_job_7"] == "deferred"
    assert all(row["reason"] for row in plan["decisions"])


def test_people_get_sums_and_a_table(
    request_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Text form: one line of sums, then a line per tool."""
    assert cli.run(["explain", str(request_file)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("40 tools: ")
    assert "\ncatalogue " in out
    assert len([line for line in out.splitlines() if line.startswith("calendar_job_")]) == 39


def test_a_header_counts(request_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a request would ask for in its headers can be tried out."""
    words = ["explain", str(request_file), "--header", "x-usher-defer: off"]
    assert cli.run(words) == 0
    assert capsys.readouterr().out.startswith("passes untouched: ")


def test_standard_input_is_read(
    request_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-` takes the request from a pipe."""
    stdin = io.TextIOWrapper(io.BytesIO(request_file.read_bytes()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert cli.run(["explain", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tools"]["sent_by_client"] == 40


@pytest.mark.parametrize(
    ("content", "message"), [("{", "not JSON"), ("[]", "a chat request is a JSON object")]
)
def test_what_is_no_request_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    """One line with the file and what is wrong with it."""
    path = tmp_path / "request.json"
    path.write_text(content)
    assert cli.run(["explain", str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"usher: {path}: {message}")


def test_wrong_words_are_one_line(
    tmp_path: Path, request_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing file and a header without a colon are named."""
    assert cli.run(["explain", str(tmp_path / "gone.json")]) == 1
    assert capsys.readouterr().err == f"usher: {tmp_path}/gone.json: no such file or directory\n"
    assert cli.run(["explain", str(request_file), "--header", "x"]) == 1
    assert capsys.readouterr().err == "usher: --header x: write it as `name: value`\n"
