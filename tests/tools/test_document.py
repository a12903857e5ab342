"""What ranking reads of a tool definition."""

import orjson

from proxy.tools.document import Document, add_examples, read_fields
from proxy.tools.signals import NEUTRAL, Signals


def _document(name: str, parameters: object = None, description: str = "") -> Document:
    raw = None if parameters is None else orjson.dumps(parameters)
    return Document(name, "", description, raw)


def test_nested_parameters_are_read() -> None:
    """Names and texts count at any reasonable depth, in objects and in lists."""
    inner = {"type": "object", "properties": {"zip_code": {"description": "Postal code"}}}
    schema = {"properties": {"stops": {"type": "array", "items": inner}}}
    (fields,) = read_fields([_document("route", schema)], Signals())
    assert fields.parameter_names == ("stop", "zip", "cod")
    assert fields.parameter_texts == ("postal", "cod")


def test_enumerated_values_count_as_text() -> None:
    """A user names the value, the schema lists it."""
    schema = {"properties": {"unit": {"enum": ["celsius", "fahrenheit", 3]}}}
    (fields,) = read_fields([_document("weather", schema)], Signals())
    assert (
        fields.parameter_texts == ("celsiu", "fahrenheit") or "fahrenheit" in fields.parameter_texts
    )


def test_parameters_of_most_tools_are_left_out() -> None:
    """A parameter that every tool takes says nothing about any of them."""
    shared = {"tenant": {"description": "Tenant id"}}
    documents = [_document(f"t{n}", {"properties": shared}) for n in range(20)]
    own = {"properties": {**shared, "vault": {"description": "Vault"}}}
    fields = read_fields([*documents, _document("secret", own)], Signals())
    assert fields[-1].parameter_names == ("vault",)


def test_broken_schemas_are_empty() -> None:
    """A schema that is no JSON, no object or refers to itself costs no tool its place."""
    broken = Document("a", "", "", b"{oops")
    odd = [_document("b", ["x"]), _document("c", {"properties": {"p": True, "q": {"$ref": "#"}}})]
    fields = read_fields([broken, *odd], Signals())
    assert [own.parameter_names for own in fields] == [(), (), ("p", "q")]


def test_examples_are_read_like_a_description() -> None:
    """What an operator knows users to say finds the tool."""
    documents = add_examples([_document("stock"), _document("other")], {"stock": ["share price"]})
    fields = read_fields(documents, Signals())
    assert fields[0].description == ("shar", "pric")
    assert fields[1].description == ()


def test_parameters_can_be_left_out() -> None:
    """An ablation reads names and descriptions only."""
    schema: dict[str, object] = {"properties": {"unit": {}}}
    (fields,) = read_fields([_document("weather", schema)], NEUTRAL)
    assert fields.parameter_names == ()
