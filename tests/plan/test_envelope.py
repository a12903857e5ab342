"""Bodies are read and spliced without changing a byte that nobody asked to change."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.plan.envelope import extend_array, open_envelope, read_messages

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
_BODIES = st.dictionaries(st.text(max_size=6), _VALUES, max_size=6)


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'"x"', b"null", b"{]", b"\xff\xfe"])
def test_what_is_no_object_has_no_envelope(body: bytes) -> None:
    """A body that is no JSON object is somebody else's to judge."""
    assert open_envelope(body) is None


def test_edit_keeps_every_other_value_to_the_byte() -> None:
    """Numbers, escapes and nulls that a re-encoding would change survive a splice."""
    body = b'{ "a": 1.0e2, "tools":[1], "b" : "\\u00e9\\/", "c":null,"d":123456789012345678901234}'
    envelope = open_envelope(body)
    assert envelope is not None
    edited = envelope.edit({"tools": b"[]"})
    assert edited == (
        b'{ "a": 1.0e2,"tools":[],"b" : "\\u00e9\\/","c":null,"d":123456789012345678901234}'
    )


def test_edit_removes_and_appends_members() -> None:
    """Removing the first and the last member leaves valid JSON; new members come last."""
    envelope = open_envelope(b'{"usher":{"defer":"off"},"model":"m","x":1}')
    assert envelope is not None
    assert envelope.edit({"usher": None, "x": None}) == b'{"model":"m"}'
    assert envelope.edit({"usher": None, "stream": b"true"}) == b'{"model":"m","x":1,"stream":true}'


def test_edit_of_an_empty_object_adds_members() -> None:
    """An empty object gains members without a stray comma."""
    envelope = open_envelope(b"{}")
    assert envelope is not None
    assert envelope.edit({"a": b"1", "b": None}) == b'{"a":1}'


@pytest.mark.parametrize("body", [b'{"a":1,"a":2}', b'{"\\u0061":1}', b'{"a":1,"b":2,"a":3}'])
def test_ambiguous_bodies_are_not_spliced(body: bytes) -> None:
    """Duplicate or escaped keys mean different things to different parsers, so hands off."""
    envelope = open_envelope(body)
    assert envelope is not None
    assert not envelope.spliceable
    with pytest.raises(ValueError, match="duplicate"):
        envelope.edit({"a": b"0"})


@given(body=_BODIES, indent=st.sampled_from([None, 1]), target=st.integers(0, 5))
def test_any_member_can_be_replaced(
    body: dict[str, object], indent: int | None, target: int
) -> None:
    """Whatever the layout, an edit changes one member and nothing else."""
    text = json.dumps(body, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    envelope = open_envelope(text)
    if envelope is None or not envelope.spliceable or not body:
        return
    key = list(body)[target % len(body)]
    assert json.loads(envelope.edit({key: b'"new"'})) == {**body, key: "new"}
    without = {name: value for name, value in body.items() if name != key}
    assert json.loads(envelope.edit({key: None})) == without


def test_get_reads_values_and_forgives() -> None:
    """Absent, null and unreadable values are all None; present ones are parsed."""
    envelope = open_envelope(b'{"a":{"b":[1]},"n":null}')
    assert envelope is not None
    assert envelope.get("a") == {"b": [1]}
    assert envelope.get("n") is None
    assert envelope.get("zz") is None
    assert envelope.raw("zz") is None
    assert list(envelope.keys()) == ["a", "n"]


def test_flag_is_true_for_true_only() -> None:
    """A stream flag of 1 or "true" is not true, as for the upstream."""
    envelope = open_envelope(b'{"a":true,"b":1,"c":"true","d":false}')
    assert envelope is not None
    assert [envelope.flag(key) for key in "abcdz"] == [True, False, False, False, False]


@pytest.mark.parametrize(
    ("raw", "messages"),
    [
        (b'[{"role":"user"}]', [{"role": "user"}]),
        (b"[]", []),
        (b'[{"role":"user"},3]', None),
        (b'{"role":"user"}', None),
        (b"null", None),
        (b"[", None),
    ],
)
def test_messages_are_a_list_of_objects(raw: bytes, messages: object) -> None:
    """Anything but a list of objects is not read as messages."""
    assert read_messages(memoryview(raw)) == messages
    assert read_messages(None) is None


@given(items=st.lists(_VALUES, max_size=3), added=st.lists(_VALUES, max_size=3))
def test_an_array_grows_at_its_end(items: list[object], added: list[object]) -> None:
    """Extending keeps the bytes in front, whatever stands in the array."""
    raw = json.dumps(items).encode()
    grown = extend_array(raw, [json.dumps(item).encode() for item in added])
    assert json.loads(grown) == [*items, *added]
    assert grown.startswith(raw[:-1])


def test_a_spaced_empty_array_grows() -> None:
    """White space inside an empty array does not lead to a comma."""
    assert orjson.loads(extend_array(b"[ \n ]", [b"1"])) == [1]


TOOLS = orjson.dumps([{"type": "function", "function": {"name": "t" * 20_000}}])


@pytest.mark.parametrize(
    ("body", "recognised"),
    [
        (b'{"model":"m","tools": %b ,"x":1}' % TOOLS, True),
        (b'{"tools":%b}' % TOOLS, True),
        (b'{"x":{"tools":%b},"tools":%b}' % (TOOLS, TOOLS), False),
        (b'{"x":{"tools":%b}}' % TOOLS, False),
        (b'{"tools":%b,"tools":[1]}' % TOOLS, False),
        (b'{"tools":%bx}' % TOOLS, False),
        (b'{"tools":1,"y":"%b"}' % (b"y" * 20_000), False),
    ],
)
def test_known_tools_change_nothing(body: bytes, recognised: bool) -> None:
    """A body reads and edits the same whether its tools are recognised or read."""
    found, fresh = open_envelope(body, [b"[1]", TOOLS]), open_envelope(body)
    if found is None or fresh is None:
        assert found is fresh
        return
    names = list(fresh.keys())
    assert list(found.keys()) == names
    assert [found.raw(key) for key in names] == [fresh.raw(key) for key in names]
    assert ((raw := found.raw("tools")) is not None and raw.obj is TOOLS) == recognised
    assert found.spliceable == fresh.spliceable
    if fresh.spliceable:
        for changes in ({"x": b"2"}, {"tools": b"[]"}, {"tools": None}):
            assert found.edit(changes) == fresh.edit(changes)
