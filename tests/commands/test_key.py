"""`usher key` makes, shows, rotates and revokes keys."""

import json
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from proxy.commands.key import app
from proxy.config import data_folder
from proxy.errors import ConfigError
from proxy.keys.key import GatewayKey, KeyPolicy, Limits
from proxy.keys.keyfile import read_keys
from proxy.wire import JSONObject


def usher_key(*words: str) -> str:
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def as_data(*words: str) -> JSONObject:
    data: JSONObject = json.loads(usher_key(*words, "--json"))
    return data


def written() -> tuple[GatewayKey, ...]:
    return read_keys(data_folder(os.environ) / "keys.json")


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A configuration with a provider."""
    file = tmp_path / "usher.yaml"
    file.write_text("providers:\n  - {name: azure, models: ['x'], base_url: 'http://a.test/v1'}\n")
    return str(file)


def test_a_key_with_everything(config: str) -> None:
    """Each option ends up in the file; budgets in nano-USD."""
    words = (
        "new alice --tenant acme --admin --model gpt-* --model o3 --upstream azure --user u1 "
        "--trust-user --rpm 60 --tpm 1000 --concurrent 4 --budget-day 2.5 --budget-month 40 "
        f"--defer off --predict on --memory read --triage shadow --config {config}"
    )
    made = as_data(*words.split())
    (key,) = written()
    assert key.proof.matches(made["secret"], 0.0)
    assert (key.name, key.tenant, key.admin) == ("alice", "acme", True)
    assert (key.models, key.upstream) == (("gpt-*", "o3"), "azure")
    assert (key.user, key.trust_user) == ("u1", True)
    assert key.limits == Limits(60, 1000, 4, 2_500_000_000, 40_000_000_000)
    assert key.policy == KeyPolicy("off", "on", "read", "shadow")


def test_the_secret_is_shown_once() -> None:
    """Not by the list, not in the file."""
    secret = usher_key("new", "alice").splitlines()[0]
    assert secret.startswith("sk-usher-")
    assert secret not in usher_key("list")
    assert secret not in (data_folder(os.environ) / "keys.json").read_text()


def test_the_list() -> None:
    """For people and for programs, empty or not."""
    assert "no keys" in usher_key("list")
    usher_key("new", "alice", "--rpm", "5")
    assert "rpm=5" in usher_key("list")
    assert as_data("list")["keys"][0]["limits"] == {"rpm": 5}


def test_the_list_speaks_of_dollars_and_policies() -> None:
    """An operator reads a budget as it was given, and sees what is fixed for a key."""
    words = "new alice --budget-day 5 --budget-month 40.5 --trust-user --defer off --memory read"
    usher_key(*words.split())
    shown = usher_key("list")
    assert "$5/day $40.5/month" in shown
    assert "trust-user defer=off memory=read" in shown
    assert as_data("list")["keys"][0]["limits"]["budget_day"] == 5_000_000_000


def test_an_upstream_has_to_be_there(config: str) -> None:
    """Else each request of the key would be refused; the list shows which one it is."""
    for wrong, hint in (("azur", "did you mean azure?"), ("nope", "there are standin, azure")):
        with pytest.raises(ConfigError, match=f"--upstream {wrong}: .*{re.escape(hint)}"):
            CliRunner().invoke(
                app, ["new", "bob", "--upstream", wrong, "--config", config], catch_exceptions=False
            )
    assert not written()
    usher_key("new", "alice", "--upstream", "azure", "--config", config)
    assert "azure" in usher_key("list")


@pytest.mark.parametrize(
    ("option", "choices"), [("--defer", "auto, off, all"), ("--memory", "off, read, write, full")]
)
def test_a_wrong_choice_names_the_right_ones(option: str, choices: str) -> None:
    """In the message itself."""
    with pytest.raises(ConfigError, match=f"{option} maybe: must be one of {choices}"):
        CliRunner().invoke(app, ["new", "bob", option, "maybe"], catch_exceptions=False)


def test_revoking_and_rotating() -> None:
    """Each says what it did."""
    usher_key("new", "alice")
    assert as_data("rotate", "alice", "--grace", "24h")["secret"].startswith("sk-usher-")
    assert "revoked alice" in usher_key("revoke", "alice")
    assert as_data("list")["keys"][0]["state"] == "revoked"
    usher_key("new", "bob")
    assert as_data("revoke", "bob") == {"name": "bob", "state": "revoked"}


def test_the_file_may_be_elsewhere(tmp_path: Path) -> None:
    """`keys.file` of the configuration in force."""
    config = tmp_path / "usher.yaml"
    config.write_text(f"keys: {{file: {tmp_path}/given.json}}")
    assert "does not start" in usher_key("list", "--config", str(config))
    usher_key("new", "alice", "--config", str(config))
    assert [key.name for key in read_keys(tmp_path / "given.json")] == ["alice"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("new ../alice", "NAME: use up to 64 letters"),
        ("new alice --memory maybe", "--memory maybe"),
        ("rotate alice --grace soon", "--grace soon"),
        ("revoke nobody", "there is no key nobody"),
    ],
)
def test_mistakes_are_one_line(words: str, complaint: str) -> None:
    """And nothing is written."""
    with pytest.raises(ConfigError, match=complaint):
        usher_key(*words.split())
    assert written() == ()


def test_limits_that_may_not_hold_are_warned_of(tmp_path: Path) -> None:
    """On stderr, so that the secret on stdout stays alone; not where one store counts for all."""
    runner = CliRunner()
    two = tmp_path / "two.yaml"
    two.write_text("server: {workers: 2}\n")
    told = runner.invoke(app, ["new", "late", "--rpm", "1", "--config", str(two)])
    assert told.exit_code == 0
    assert "server.workers is 2 and there is no state.url" in told.stderr
    told = runner.invoke(app, ["new", "perhaps", "--rpm", "1"])
    assert "`usher serve --workers` above 1" in told.stderr
    shared = tmp_path / "shared.yaml"
    shared.write_text("server: {workers: 2}\nstate: {url: 'redis://127.0.0.1:1'}\n")
    for words in (["a", "--rpm", "1", "--config", str(shared)], ["b", "--config", str(two)]):
        assert runner.invoke(app, ["new", *words]).stderr == ""
