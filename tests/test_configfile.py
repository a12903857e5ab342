"""What a configuration file may hold, and what is said about one that can't be read."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.configfile import MAX_BYTES, Entry, parse_value, read_file
from proxy.errors import ConfigError
from proxy.wire import JSON


def refusal(path: Path, content: str | bytes) -> str:
    """The message about a file with this content, without the folder."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ConfigError) as caught:
        read_file(path)
    return caught.value.message.replace(f"{path.parent}/", "")


def test_each_value_knows_its_line(tmp_path: Path) -> None:
    """Nested mappings and lists become flat keys with file and line."""
    path = tmp_path / "usher.yaml"
    path.write_text("server:\n  port: 1\nproviders:\n  - name: a\n    models: [x, y]\n")
    assert read_file(path) == {
        ("server", "port"): Entry(1, f"{path}:2"),
        ("providers", 0, "name"): Entry("a", f"{path}:4"),
        ("providers", 0, "models", 0): Entry("x", f"{path}:5"),
        ("providers", 0, "models", 1): Entry("y", f"{path}:5"),
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("true", True),
        ("false", False),
        ("", None),
        ("~", None),
        ("null", None),
        ("8", 8),
        ("-8", -8),
        ("007", "007"),
        ("0x10", "0x10"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("1.5", 1.5),
        ("'8'", "8"),
        ('"true"', "true"),
        ("9" * 40, "9" * 40),
        ("[]", []),
        ("{}", {}),
    ],
)
def test_words_mean_what_they_look_like(tmp_path: Path, text: str, value: JSON) -> None:
    """Only null, true, false and numbers are special; `on`, dates and 1:30 stay text."""
    path = tmp_path / "usher.yaml"
    path.write_text(f"key: {text}\n")
    assert read_file(path)["key",].value == value


@pytest.mark.parametrize("text", ["", "\n", "# nothing yet\n", "---\n", "\ufeff# marked\n"])
def test_an_empty_file_is_no_mistake(tmp_path: Path, text: str) -> None:
    """A file without a value changes nothing."""
    path = tmp_path / "usher.yaml"
    path.write_text(text, encoding="utf-8")
    assert not [entry for entry in read_file(path).values() if entry.value is not None]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- a\n", "usher.yaml: the file must be a mapping of sections, e.g. `server:`"),
        ("just words", "usher.yaml: the file must be a mapping of sections, e.g. `server:`"),
        ("a: 1\nb: 2\na: 3\n", "usher.yaml:3: `a` is given twice"),
        ("a:\n\tb: 1\n", "usher.yaml:2: a tab where only spaces may indent"),
        ("a: 1\nb: &x 1\nc: *x\n", "usher.yaml:3: aliases are not read here"),
        ("a: !!python/object:os.system x\n", "usher.yaml:1: tags are not read here"),
        ("a: " + "[" * 5000, "usher.yaml:1: nested too deep"),
        ("a: {\n", "usher.yaml:2: expected the node content, found '<stream end>'"),
        ("? [a]\n: b\n", "usher.yaml:1: a key must be a plain word"),
        ("a: 1\n---\nb: 2\n", "usher.yaml:2: found another document"),
        (b"a: 1\nb: \xff\n", "usher.yaml:2: not UTF-8 text"),
        (b"a: \x00\n", "usher.yaml: unacceptable character #x0000"),
        (b"#" * (MAX_BYTES + 1), f"usher.yaml: larger than {MAX_BYTES} bytes"),
    ],
)
def test_a_broken_file_gets_one_line(tmp_path: Path, content: str | bytes, message: str) -> None:
    """Whatever is wrong with a file, the operator reads one line with its place."""
    said = refusal(tmp_path / "usher.yaml", content)
    assert "\n" not in said
    assert said.replace("but found", "found").startswith(message)


def test_a_bomb_of_aliases_never_grows(tmp_path: Path) -> None:
    """A file that would expand to gigabytes is refused at its first alias."""
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    assert refusal(tmp_path / "usher.yaml", "\n".join(lines)) == (
        "usher.yaml:2: aliases are not read here"
    )


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    """What can't be read is named with the system's reason."""
    with pytest.raises(ConfigError, match="is a directory"):
        read_file(tmp_path)


@pytest.mark.parametrize(
    ("text", "value"), [('["a", 1]', ["a", 1]), ("{a: [b]}", {"a": ["b"]}), ("", None)]
)
def test_one_line_values(text: str, value: JSON) -> None:
    """A variable may hold a list or mapping as JSON or YAML."""
    assert parse_value(text) == value


@pytest.mark.parametrize("text", ["[secret", "{[secret]: 1}", "*secret", "a: b: secret"])
def test_a_broken_one_line_value_is_not_repeated(text: str) -> None:
    """It may hold a credential, so the message says only what is wrong."""
    with pytest.raises(ConfigError) as caught:
        parse_value(text)
    assert "secret" not in caught.value.message


YAML_BITS = st.lists(
    st.sampled_from(["a", "b", ":", " ", "\n", "- ", "[", "]", "{", "}", "'", '"', "|", ">", "#"])
    | st.sampled_from(
        ["\t", "&x", "*x", "!t", "%", "?", ",", "${A}", "\r", "\u2028", "\ufeff", "~"]
    )
    | st.text(max_size=3),
    max_size=40,
)


@given(YAML_BITS)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_is_read_or_refused(tmp_path: Path, bits: list[str]) -> None:
    """Whatever a file holds, the result is values or a ConfigError with one line."""
    path = tmp_path / "usher.yaml"
    path.write_bytes("".join(bits).encode("utf-8", "surrogatepass"))
    assert "\n" not in said_about(path)


def said_about(path: Path) -> str:
    """The refusal of a file, or nothing when it is read."""
    try:
        read_file(path)
    except ConfigError as error:
        return error.message
    return ""
