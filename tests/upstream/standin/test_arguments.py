"""Arguments that a schema accepts."""

import gzip
import json
from pathlib import Path

import jsonschema_rs
import pytest

from proxy.upstream.standin.arguments import fill
from proxy.wire import JSON, JSONObject


def _object(**properties: JSON) -> JSONObject:
    return {"type": "object", "properties": properties, "required": list(properties)}


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"type": "string"}, "weather in Paris", "Paris"),
        ({"type": "string"}, 'call it "blue moon" please', "blue moon"),
        ({"type": "string"}, "レポートを「月報」として", "月報"),
        ({"type": "string", "format": "email"}, "to ann@example.org, now", "ann@example.org"),
        ({"type": "string", "format": "uri"}, "see https://a.example/x?y=1", "https://a.example/x?y=1"),
        ({"type": "string", "format": "date"}, "on 2027-05-04", "2027-05-04"),
        ({"type": "string", "enum": ["low", "high"]}, "with high priority", "high"),
        ({"type": "string", "enum": ["low", "high"]}, "whatever", "low"),
        ({"type": "string", "const": "v1"}, "whatever", "v1"),
        ({"type": "string", "default": "eu"}, "whatever", "eu"),
        ({"type": ["null", "integer"]}, "give me 7 of them", 7),
        ({"type": "integer", "minimum": 10}, "give me 7 of them", 10),
        ({"type": "integer", "exclusiveMinimum": 4}, "", 5),
        ({"type": "number", "maximum": 0.5}, "", 0.5),
        ({"type": "integer", "multipleOf": 5}, "about 7", 10),
        ({"type": "boolean"}, "", True),
        ({"type": "null"}, "", None),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, "3 and 4", [3, 4]),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, "5", 5),
        ({"type": "string", "pattern": "^[A-Z]$"}, "", "A"),
        ({"type": "string", "minLength": 3, "maxLength": 4}, 'is "a"', "axx"),
        ({"type": "string", "pattern": "("}, "", "example-p"),
        ({"items": {"type": "boolean"}}, "", [True]),
        ({"properties": {"x": {"const": 1}}, "required": ["x"]}, "", {"x": 1}),
        (True, "", None),
        ({"anyOf": [True]}, "", "example-p"),
    ],
)  # fmt: skip
def test_a_required_property_is_filled(schema: JSON, text: str, expected: JSON) -> None:
    """From the text where it says something, with a typical value otherwise."""
    assert fill(_object(p=schema), text) == {"p": expected}


def test_only_what_is_required_is_filled() -> None:
    """Optional properties are left to the tool's defaults."""
    schema = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}
    assert fill(schema, "").keys() == {"a"}


def test_a_value_is_found_behind_the_name_of_its_property() -> None:
    """`resource group rg-1` is the value of `resource-group`."""
    schema = _object(**{"resource-group": {"type": "string"}, "vault": {"type": "string"}})
    found = fill(schema, "the secrets of vault kv-prod in resource group rg-1")
    assert found == {"resource-group": "rg-1", "vault": "kv-prod"}


def test_two_properties_never_get_the_same_words() -> None:
    """Each quoted text is used once."""
    schema = _object(a={"type": "string"}, b={"type": "string"})
    assert fill(schema, 'from "x" to "y"') == {"a": "x", "b": "y"}


def test_references_and_compositions_are_followed() -> None:
    """Local definitions and `allOf`, as generated schemas use them."""
    schema = {
        **_object(
            p={
                "allOf": [
                    {"$ref": "#/$defs/base"},
                    {"properties": {"y": {"const": 2}}, "required": ["y", "z"]},
                ]
            }
        ),
        "$defs": {"base": _object(x={"const": 1}, y={"type": "integer"})},
    }
    assert fill(schema, "") == {"p": {"x": 1, "y": 2, "z": "example-z"}}


def test_a_schema_that_contains_itself_ends() -> None:
    """Recursion stops after a few levels."""
    schema = {**_object(next={"$ref": "#"})}
    assert json.dumps(fill(schema, "")).count("next") < 12


def test_a_reference_to_itself_ends() -> None:
    """It says nothing, so anything goes."""
    schema = {**_object(p={"$ref": "#/$defs/a"}), "$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert fill(schema, "") == {"p": "example-p"}


def test_references_to_elsewhere_are_not_followed() -> None:
    """Nothing is fetched; anything goes there."""
    assert fill(_object(p={"$ref": "https://example.com/s.json"}), "") == {"p": "example-p"}


@pytest.mark.parametrize("text", ["", "Create 3 things named Alpha-1 in West for a@b.example"])
def test_arguments_are_valid_for_every_tool_of_the_real_catalogue(text: str) -> None:
    """235 schemas that nobody here wrote, with and without something to fill in."""
    tools = json.loads(gzip.decompress(Path("proxy/demo/azure_235_tools.json.gz").read_bytes()))
    for tool in tools:
        schema = tool["function"]["parameters"]
        assert jsonschema_rs.is_valid(schema, fill(schema, text)), tool["function"]["name"]
