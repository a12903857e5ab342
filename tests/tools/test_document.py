"""What ranking reads of a tool definition."""

import orjson

from proxy.tools.document import Document, read_fields


def _document(name: str, parameters: object = None, description: str = "") -> Document:
    raw = None if parameters is None else orjson.dumps(parameters)
    return Document(name, "", description, raw)


def test_nested_parameters_are_read() -> None:
    """Names and texts count at any reasonable depth, in objects and in lists."""
    inner = {"type": "object", "properties": {"zip_code": {"description": "Postal code"}}}
    schema = {"properties": {"stops": {"type": "array", "items": inner}}}
    (fields,) = read_fields([_document("route", schema)])
    assert fields.parameter_names == ("stop", "zip", "cod")
    assert fields.parameter_texts == ("postal", "cod")


def test_enumerated_values_count_as_text() -> None:
    """A user names the value, the schema lists it."""
    schema = {"properties": {"unit": {"enum": ["celsius", "fahrenheit", 3]}}}
    (fields,) = read_fields([_document("weather", schema)])
    assert (
        fields.parameter_texts == ("celsiu", "fahrenheit") or "fahrenheit" in fields.parameter_texts
    )


def test_parameters_of_most_tools_are_left_out() -> None:
    """A parameter that every tool takes says nothing about any of them."""
    shared = {"tenant": {"description": "Tenant id"}}
    documents = [_document(f"t{n}", {"properties": shared}) for n in range(20)]
    own = {"properties": {**shared, "vault": {"description": "Vault"}}}
    fields = read_fields([*documents, _document("secret", own)])
    assert fields[-1].parameter_names == ("vault",)


def test_broken_schemas_are_empty() -> None:
    """A schema that is no JSON, no object or refers to itself costs no tool its place."""
    broken = Document("a", "", "", b"{oops")
    odd = [_document("b", ["x"]), _document("c", {"properties": {"p": True, "q": {"$ref": "#"}}})]
    fields = read_fields([broken, *odd])
    assert [own.parameter_names for own in fields] == [(), (), ("p", "q")]
