"""Where settings come from, which one wins, and what an operator reads when one is wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from proxy.config import data_folder, find_file, load
from proxy.configfile import Entry, Key
from proxy.errors import ConfigError
from proxy.settings import Settings

Write: TypeAlias = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes ./usher.yaml and says where it is."""
    monkeypatch.chdir(tmp_path)

    def write_file(text: str) -> Path:
        path = Path("usher.yaml")
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


def refusal(path: Path | None, environ: dict[str, str] | None = None) -> str:
    """The message of the ConfigError that loading raises."""
    with pytest.raises(ConfigError) as caught:
        load(path, environ or {})
    return caught.value.message


def test_nothing_given_means_all_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file or variables every setting has its default and no origin."""
    monkeypatch.chdir(tmp_path)
    loaded = load(None, {})
    assert (loaded.settings, dict(loaded.origins), loaded.path) == (Settings(), {}, None)


def test_the_reference_file_states_the_defaults() -> None:
    """Loading config/usher.yaml changes nothing: it is the list of defaults."""
    assert load(Path("config/usher.yaml"), {}).settings == Settings()


def test_later_sources_win_and_are_named(write: Write) -> None:
    """Default, file, environment, command line: each wins over the one before."""
    path = write("server: {port: 1, host: '::1'}\ndeferral:\n  min_tools: 2\n")
    flags: dict[Key, Entry] = {("server", "port"): Entry(3, "--port")}
    loaded = load(path, {"USHER_SERVER__PORT": "2", "USHER_DEFERRAL__MIN_TOOLS": "5"}, flags)
    assert (loaded.settings.server.port, loaded.settings.deferral.min_tools) == (3, 5)
    assert loaded.origins == {
        "server.host": "usher.yaml:1",
        "server.port": "--port",
        "deferral.min_tools": "env USHER_DEFERRAL__MIN_TOOLS",
    }


def test_settings_cannot_be_changed_afterwards() -> None:
    """The settings in force are frozen."""
    with pytest.raises(ValueError, match="frozen"):
        load(Path("config/usher.yaml"), {}).settings.server.port = 1  # type: ignore[misc] # the point


@pytest.mark.parametrize(
    ("text", "environ", "value"),
    [
        ("${KEY}", {"KEY": "k"}, "k"),
        ("${KEY:-other}", {}, "other"),
        ("${KEY:-other}", {"KEY": ""}, "other"),
        ("${KEY:-}", {}, None),
        ("a-${X}-${Y}", {"X": "1", "Y": "${X}"}, "a-1-${X}"),
        ("$${KEY}", {}, "${KEY}"),
        ("$KEY", {}, "$KEY"),
    ],
)
def test_variables_are_put_in_once(
    write: Write, text: str, environ: dict[str, str], value: str | None
) -> None:
    """`${NAME}`, `${NAME:-default}` and the escape `$${`; what a variable holds stays as it is."""
    key = load(write(f"upstream: {{api_key: '{text}'}}"), environ).settings.upstream.api_key
    assert (key.get_secret_value() if key else None) == value


def test_a_number_may_come_from_a_variable(write: Write) -> None:
    """A variable's text is read as the setting's own type, and both places are its origin."""
    loaded = load(write("server:\n  port: ${PORT}\n"), {"PORT": "9000"})
    assert loaded.settings.server.port == 9000
    assert loaded.origins["server.port"] == "usher.yaml:2, env PORT"


def test_a_missing_variable_is_named(write: Write) -> None:
    """A variable that is not set stops the start, with the line that asked for it."""
    message = refusal(write("\nupstream: {api_key: '${ROUTER_KEY}'}"))
    assert message == (
        "usher.yaml:2: upstream.api_key: the environment variable ROUTER_KEY is not set"
    )


@pytest.mark.parametrize(
    ("variable", "text", "pin"),
    [("PIN", "a, b*", ("a", "b*")), ("PIN", '["a", "b,c"]', ("a", "b,c")), ("PIN", "", ())],
)
def test_lists_in_variables(variable: str, text: str, pin: tuple[str, ...]) -> None:
    """A list in the environment is a comma list or JSON; an empty variable counts as not set."""
    assert load(None, {f"USHER_DEFERRAL__{variable}": text}).settings.deferral.pin == pin


def test_a_list_in_the_environment_replaces_the_file_s(write: Write) -> None:
    """No element of the file's longer list is left over."""
    path = write("deferral: {pin: [a, b, c]}")
    assert load(path, {"USHER_DEFERRAL__PIN": "x"}).settings.deferral.pin == ("x",)


def test_a_broken_list_in_the_environment_is_refused() -> None:
    """The variable is named and its content is not repeated."""
    message = refusal(None, {"USHER_DEFERRAL__PIN": "[secret"})
    assert message == "env USHER_DEFERRAL__PIN: neither JSON nor YAML"


def test_foreign_variables_are_left_alone() -> None:
    """Names without `__`, such as those that Kubernetes sets for a service, are no settings."""
    environ = {"USHER_PORT": "tcp://10.0.0.1:8787", "USHER_SERVICE_HOST": "10.0.0.1"}
    assert load(None, environ).settings == Settings()


def test_an_unknown_variable_is_refused() -> None:
    """A misspelt USHER_ variable is an error that names the right one."""
    message = refusal(None, {"USHER_DEFERRAL__MINTOOLS": "3"})
    assert message.endswith("no such setting; did you mean USHER_DEFERRAL__MIN_TOOLS?")


@pytest.mark.parametrize(
    ("environ", "url", "key"),
    [
        ({}, None, None),
        ({"OPENAI_API_KEY": "k"}, "https://api.openai.com/v1", "k"),
        ({"OPENAI_BASE_URL": "http://h/v1"}, "http://h/v1", None),
        ({"OPENAI_BASE_URL": "http://h/v1", "OPENAI_API_KEY": "k"}, "http://h/v1", "k"),
        ({"OPENAI_BASE_URL": "", "OPENAI_API_KEY": ""}, None, None),
    ],
)
def test_the_sdk_s_variables_are_honoured(
    environ: dict[str, str], url: str | None, key: str | None
) -> None:
    """Without configuration the upstream is what the OpenAI SDK would talk to."""
    upstream = load(None, environ).settings.upstream
    assert upstream.base_url == url
    assert (upstream.api_key.get_secret_value() if upstream.api_key else None) == key


def test_the_sdk_s_key_goes_to_its_own_address_only(write: Write) -> None:
    """A configured upstream never receives a key that was meant for another host."""
    path = write("upstream: {base_url: 'http://other/v1'}")
    environ = {"OPENAI_API_KEY": "k"}
    assert load(path, environ).settings.upstream.api_key is None
    same = load(path, environ | {"OPENAI_BASE_URL": "http://other/v1/"}).settings.upstream
    assert same.api_key is not None


def test_usher_is_not_its_own_upstream() -> None:
    """The variable that points apps at Usher would make it call itself: refused at the start."""
    message = refusal(None, {"OPENAI_BASE_URL": "http://localhost:8787/v1"})
    assert message == (
        "upstream.base_url: http://localhost:8787/v1 is Usher itself; name the real upstream"
    )


def test_any_free_port_is_not_a_loop() -> None:
    """With port 0 nothing is known yet that could be a loop."""
    environ = {"USHER_SERVER__PORT": "0", "OPENAI_BASE_URL": "http://localhost:8787/v1"}
    assert load(None, environ).settings.server.port == 0


def test_every_problem_has_its_line(write: Write) -> None:
    """Several mistakes are reported together, one line each."""
    message = refusal(write("server:\n  port: 70000\ndeferral: {mode: true}\nlogg: {}\n"))
    assert sorted(message.splitlines()) == [
        "usher.yaml:2: server.port: must be less than or equal to 65535",
        "usher.yaml:3: deferral.mode: must be one of 'off', 'observe', 'on'",
        "usher.yaml:4: logg: no such setting; did you mean log?",
    ]


def test_an_empty_section_keeps_its_defaults(write: Write) -> None:
    """`server:` with every line below it commented out is no mistake."""
    assert load(write("server:\n  # port: 1\n"), {}).settings == Settings()


def test_a_value_below_a_value_is_refused(write: Write) -> None:
    """A variable that reaches into a plain value says so."""
    message = refusal(write("server: {port: 1}"), {"USHER_SERVER__PORT__X": "1"})
    assert message.startswith("env USHER_SERVER__PORT__X: server.port.x:")


def test_secrets_stay_out_of_messages(write: Write) -> None:
    """A value of the wrong type is never repeated: it may be a key."""
    message = refusal(write("upstream:\n  api_key: [sk-secret]\n"))
    assert "sk-secret" not in message
    assert message.startswith("usher.yaml:2: upstream.api_key")


def test_the_file_is_found_in_order(write: Write) -> None:
    """USHER_CONFIG, then ./usher.yaml, then none."""
    assert find_file({}) is None
    write("")
    assert find_file({}) == Path("usher.yaml")
    assert find_file({"USHER_CONFIG": "/etc/x.yaml"}) == Path("/etc/x.yaml")


def test_a_named_file_must_exist() -> None:
    """A file that was asked for and is missing stops the start."""
    assert refusal(None, {"USHER_CONFIG": "/no/such.yaml"}) == (
        "/no/such.yaml: no such file or directory"
    )


def test_data_lives_where_the_operator_says() -> None:
    """USHER_DATA, else the platform's own folder."""
    assert data_folder({"USHER_DATA": "/srv/usher"}) == Path("/srv/usher")
    assert data_folder({}).name == "usher"
