"""Keys and values as they may be stored."""

import pytest

from proxy.memory.value import Refused, check_key, check_value, has_secret, slugify, tidy


@pytest.mark.parametrize(
    ("key", "slug"),
    [
        ("Home City", "home_city"),
        ("Straße 5", "stra_e_5"),
        ("café!", "cafe"),
        ("5x", ""),
        ("城", ""),
    ],
)
def test_keys_become_plain(key: str, slug: str) -> None:
    """Letters, digits and underscores, beginning with a letter; else nothing."""
    assert slugify(key) == slug


def test_long_keys_that_begin_alike_stay_apart() -> None:
    """Cut to 64 characters they would overwrite one another."""
    one, other = slugify("k" * 300), slugify("k" * 299)
    assert one != other
    assert len(one) == len(other) == 64


def test_reserved_and_foreign_keys() -> None:
    """`nothing` is no key, and a list of valid keys is a list."""
    with pytest.raises(Refused, match="bad_key"):
        check_key("Nothing", ())
    with pytest.raises(Refused, match="invalid_key"):
        check_key("pets", ["city"])
    assert check_key("City", ["city"]) == "city"


def test_what_cannot_be_seen_is_removed() -> None:
    """Bidi marks, zero-width signs and control characters go, emoji and Persian keep theirs."""
    assert tidy("a\u202eb\u200bc\x00d\ne") == "abcd e"
    assert tidy("می\u200cروم") == "می\u200cروم"
    assert tidy("e\u0301") == "é"


@pytest.mark.parametrize(
    "text",
    [
        "sk-" + "ant-api03-" + "x1" * 12,
        "AKIA" + "IOSFODNN7EXAMPLE",
        "ghp_" + "abcdefghijklmnopqrstuvwx",
        "my PIN is 4471",
        "Passwort: hunter2",
        "5500 0000 0000 0004",
        "-----BEGIN RSA PRIVATE KEY-----",
    ],
)
def test_secrets(text: str) -> None:
    """Keys, passwords and card numbers are secrets."""
    assert has_secret(text)


@pytest.mark.parametrize("text", ["4111 1111 1111 1112", "Call 0170 4412345", "born 1990-01-01"])
def test_numbers_that_are_no_secrets(text: str) -> None:
    """A number that is no card, a telephone and a date pass."""
    assert not has_secret(text)


def test_length() -> None:
    """A value within its limit is kept, a longer one refused."""
    assert check_value(" a  b ", 3) == "a b"
    with pytest.raises(Refused, match="too_long"):
        check_value("abcd", 3)
