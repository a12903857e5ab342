"""`usher check`: what is in force, where it came from, and no secrets."""

import json
from pathlib import Path

import pytest

from proxy import cli


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small configuration with a secret of each kind."""
    monkeypatch.chdir(tmp_path)
    path = Path("usher.yaml")
    path.write_text(
        "upstream:\n"
        "  base_url: http://host/v1\n"
        "  api_key: sk-secret\n"
        "deferral: {pin: [a, b]}\n"
        "providers:\n"
        "  - {name: p, models: ['m*'], api_key: sk-other, base_url: http://p/v1}\n"
        "ledger: {url: 'postgresql://me:sesame@host/usher'}\n"
    )
    return path


def test_each_value_has_its_origin(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Data form: settings and origins under the same names."""
    assert cli.run(["check", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["ok"], data["file"]) == (True, str(config))
    assert data["settings"]["deferral.pin"] == ["a", "b"]
    assert data["origins"]["deferral.pin"] == "usher.yaml:4"
    assert data["origins"]["server.port"] == "default"
    assert data["settings"]["providers[0].name"] == "p"
    assert data["origins"].keys() == data["settings"].keys()


def test_librechats_spelling_has_its_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Values of a pasted block come from the file, under whichever name."""
    monkeypatch.chdir(tmp_path)
    Path("usher.yaml").write_text(
        "upstream: {base_url: 'http://host/v1'}\n"
        "classification:\n"
        "  enabled: true\n"
        "  timeoutMs: 900\n"
        "  toolSelection: {maxCatalogTools: 50}\n"
        "  providers:\n"
        "    myOwn: {baseURL: 'http://judge/v1/systemone', apiKeyEnv: KEY}\n"
    )
    assert cli.run(["check", "--json"]) == 0
    origins = json.loads(capsys.readouterr().out)["origins"]
    assert origins["classification.timeout_ms"] == "usher.yaml:4"
    assert origins["classification.tool_selection.max_options"] == "usher.yaml:5"
    assert origins["classification.providers.myOwn.base_url"] == "usher.yaml:7"
    assert origins["classification.max_retries"] == "default"


@pytest.mark.parametrize("words", [["check"], ["check", "--json"]])
def test_secrets_are_masked(
    config: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """No key and no password of a URL is printed."""
    assert cli.run(words) == 0
    out = capsys.readouterr().out
    assert not [word for word in ("sk-secret", "sk-other", "sesame") if word in out]
    assert "***:***@host" in out


def test_people_get_a_table(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text form: one line per setting with value and origin."""
    assert cli.run(["check"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["configuration:", "usher.yaml"] in lines
    assert ["deferral.pin", "a,", "b", "usher.yaml:4"] in lines
    assert ["deferral.mode", "on", "default"] in lines


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("upstream: {base_url: nowhere}", "upstream.base_url is not an http or https URL"),
        ("providers: [{name: a, models: [x]}]", "base_url of provider a is missing"),
        ("ledger: {url: 'mysql://x/y'}", "ledger.url: use sqlite:"),
        ("classification: {calibration: nowhere}", "classification.calibration"),
        ("classification: {enabled: true, backend: nobody}", "classification.backend: nobody"),
    ],
)
def test_what_would_stop_a_start_is_found(
    config: Path, capsys: pytest.CaptureFixture[str], text: str, complaint: str
) -> None:
    """A configuration that passes here starts: so it can guard a deployment."""
    config.write_text(text)
    assert cli.run(["check"]) == 1
    told = capsys.readouterr().err
    assert complaint in told
    assert told.count("\n") == 1


def test_every_mistake_is_reported(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 1, one line each; as data too."""
    config.write_text("server: {port: x}\nlogs: {}\n")
    assert cli.run(["check"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert cli.run(["check", "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["ok"], len(data["errors"])) == (False, 2)
