"""People and programs can ask the ranker directly."""

import orjson
import pytest

from proxy.errors import BadRequest
from proxy.tools.lookup import look_up, read_lookup
from proxy.tools.rank import Document, build_lexical

INDEX = build_lexical(
    [
        Document("weather_now", "", "Current weather of a city.", b'{"type":"object","x":1}'),
        Document("weather_past", "", "Weather of the past.", None),
        Document("mail_send", "", "Send an email.", None),
    ]
)


def test_the_best_tools_with_their_schemas() -> None:
    """Name, description, schema and a score that falls."""
    found = look_up(INDEX, read_lookup(b'{"query":"current weather","tools":[]}'))
    assert found["total_searched"] == 3
    assert [tool["name"] for tool in found["tools"]] == ["weather_now", "weather_past"]
    assert found["tools"][0]["inputSchema"] == {"type": "object", "x": 1}
    assert found["tools"][0]["score"] == 1.0 > found["tools"][1]["score"]


def test_top_k_limits() -> None:
    """Five unless asked otherwise."""
    assert read_lookup(b'{"query":"a","tools":[]}').top_k == 5
    lookup = read_lookup(b'{"query":"weather","tools":[],"top_k":1}')
    assert len(look_up(INDEX, lookup)["tools"]) == 1


def test_a_catalogue_can_be_named_by_its_digest() -> None:
    """A gateway that knows the catalogue need not be sent it again."""
    assert read_lookup(b'{"query":"a","catalogue":"abc"}').digest == "abc"


def test_no_match_is_an_empty_list() -> None:
    """Nothing in common, nothing found."""
    assert look_up(INDEX, read_lookup(b'{"query":"\xf0\x9f\x8e\x89","tools":[]}'))["tools"] == []


@pytest.mark.parametrize(
    "body",
    [
        {"tools": []},
        {"query": 1, "tools": []},
        {"query": "a"},
        {"query": "a", "tools": [], "catalogue": "b"},
        {"query": "a", "catalogue": 7},
        {"query": "a", "tools": {}},
        {"query": "a", "tools": [], "top_k": 0},
        {"query": "a", "tools": [], "top_k": 21},
        {"query": "a", "tools": [], "top_k": True},
        [],
    ],
)
def test_mistakes_are_refused(body: object) -> None:
    """Every wrong field is a 400 that names it."""
    with pytest.raises(BadRequest):
        read_lookup(orjson.dumps(body))


def test_broken_json_is_refused() -> None:
    """A body that is no JSON is a 400, too."""
    with pytest.raises(BadRequest, match="not JSON"):
        read_lookup(b"{")
