"""Arguments are accepted, gently repaired or refused with a reason."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.tools.validate import Checker, nearest_names

_SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "flag": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "integer"}},
        "object": {"type": "object"},
        "text": {"type": "string"},
    },
    "required": ["n"],
    "additionalProperties": False,
}
_CHECKER = Checker(orjson.dumps(_SCHEMA))


@given(
    value=st.fixed_dictionaries(
        {"n": st.integers(-5, 5)},
        optional={
            "flag": st.booleans(),
            "list": st.lists(st.integers(0, 9), max_size=3),
            "object": st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
            "text": st.text(max_size=5),
        },
    ),
    indent=st.sampled_from([None, 2]),
)
def test_a_valid_call_is_never_changed(value: dict[str, object], indent: int | None) -> None:
    """Arguments that fit go on exactly as the model wrote them."""
    text = json.dumps(value, indent=indent)
    checked = _CHECKER.check(text)
    assert checked.error is None
    assert checked.arguments == text


@pytest.mark.item(
    "calls/empty-arguments",
    "calls/null-arguments",
    "calls/double-encoded",
    "calls/trailing-garbage",
)
@pytest.mark.parametrize(
    ("arguments", "accepted"),
    [
        ('{"n":"42"}', {"n": 42}),
        ('{"n":1,"flag":"True"}', {"n": 1, "flag": True}),
        ('{"n":1,"list":3}', {"n": 1, "list": [3]}),
        ('{"n":1,"list":"[1,\\"2\\"]"}', {"n": 1, "list": [1, 2]}),
        ('{"n":1,"object":"{\\"a\\":1}"}', {"n": 1, "object": {"a": 1}}),
        ('{"n":1,"text":null}', {"n": 1}),
        ('"{\\"n\\":1}"', {"n": 1}),
        ('{"n":1}}', {"n": 1}),
    ],
)
def test_safe_coercions(arguments: str, accepted: object) -> None:
    """What is only written the wrong way is put right."""
    checked = _CHECKER.check(arguments)
    assert checked.error is None
    assert orjson.loads(checked.arguments) == accepted


@pytest.mark.parametrize(
    ("arguments", "path", "word"),
    [
        ('{"n":"abc"}', "$.n", "integer"),
        ('{"n":1.5}', "$.n", "integer"),
        ('{"n":true}', "$.n", "integer"),
        ('{"n":"true"}', "$.n", "integer"),
        ("{}", "$", "required"),
        ("", "$", "required"),
        ('{"n":null}', "$.n", "integer"),
        ('{"n":1,"text":5}', "$.text", "string"),
        ('{"n":1,"list":["x"]}', "$.list[0]", "integer"),
        ('{"n":1,"zz":1}', "$", "zz"),
        ("[1]", "$", "object"),
        ("{broken", "$", "object"),
        ('"text"', "$", "object"),
    ],
)
def test_what_needs_a_guess_is_refused(arguments: str, path: str, word: str) -> None:
    """The complaint names the place and the rule, so that the model can do better."""
    checked = _CHECKER.check(arguments)
    assert checked.error is not None
    assert word in checked.error
    assert checked.path == path
    assert checked.arguments == arguments


def test_a_complaint_does_not_repeat_the_value() -> None:
    """Arguments may be private and complaints reach logs."""
    assert "secret" not in str(_CHECKER.check('{"n":"secret"}').error)


def _nested(depth: int) -> dict[str, object]:
    schema: dict[str, object] = {"type": "integer"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


@pytest.mark.item("catalog/remote-reference", "catalog/no-parameters", "catalog/boolean-schema")
@pytest.mark.parametrize(
    "schema",
    [
        None,
        b"{not json",
        b'{"type":"nonsense"}',
        b'{"$ref":"http://127.0.0.1:9/schema.json"}',
        b'{"properties":{"n":{"$ref":"file:///etc/hostname"}}}',
        b'{"$schema":"http://example.com/own","type":"string"}',
        json.dumps(_nested(40)).encode(),
        b'{"description":"' + b"x" * 1_100_000 + b'"}',
    ],
)
def test_schemas_that_cannot_be_used_accept_any_object(schema: bytes | None) -> None:
    """Nothing is fetched, and the client's own validation decides."""
    checker = Checker(schema)
    assert checker.check('{"n":"anything"}').error is None
    assert checker.check("").arguments == "{}"
    assert checker.check("[").error is not None


@pytest.mark.item("catalog/recursive-reference")
def test_a_recursive_schema_is_checked() -> None:
    """A reference to itself is local and terminates."""
    checker = Checker(
        b'{"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}},'
        b'"type":"object","properties":{"head":{"$ref":"#/$defs/n"}}}'
    )
    assert checker.check('{"head":{"next":{"next":{}}}}').error is None
    assert checker.check('{"head":{"next":{"next":3}}}').path == "$.head.next.next"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("functions.mail_send", ["mail_send"]),
        ("Mail-Send", ["mail_send"]),
        ("mail_sendd", ["mail_send"]),
        ("forecast", ["weather_forecast"]),
        ("send", []),
        ("reboot_server", []),
        ("", []),
    ],
)
def test_a_mistaken_name_finds_its_tool(name: str, found: list[str]) -> None:
    """Only what can hardly mean anything else is matched."""
    assert nearest_names(name, ["mail_send", "mail_find", "weather_forecast"]) == found
