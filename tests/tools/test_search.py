"""What a model gets for its `tool_search` call, however it writes it."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.tools.rank import Document, build_lexical
from proxy.tools.search import Found, Query, parse_arguments, search

INDEX = build_lexical(
    [
        Document("kv__secret_get", "kv", "Read a secret.", b'{"type":"object","z":1}'),
        Document("kv__secret_set", "kv", "Store a secret.", None),
        Document("weather", "", "Current weather of a city.", None),
    ]
)


def _search(
    arguments: str,
    *,
    loaded: tuple[str, ...] = (),
    asked: set[str] | None = None,
    schemas: bool = False,
) -> Found:
    asked = set() if asked is None else asked
    query = parse_arguments(arguments)
    return search(INDEX, query, loaded=loaded, asked=asked, limit=5, max_new=12, schemas=schemas)


@pytest.mark.item("search/queries", "search/query", "search/bare-string", "search/broken-json")
@pytest.mark.parametrize(
    "arguments",
    [
        '{"queries": ["weather"]}',
        '{"queries": "weather"}',
        '{"query": "weather"}',
        '["weather"]',
        '"weather"',
        '"{\\"query\\": \\"weather\\"}"',
        "weather",
        '{"queries": ["weather"',
        '{"queries": ["weather',
        "{'queries': ['weather']}",
        '{queries: ["weather",]}',
        "queries: weather",
        '```json\n{"queries": ["weather"]}\n```',
        '<tool_call>{"queries": ["weather"]}</tool_call>',
        '{"queries": [{"query": "weather"}]}',
        '{"capability": "weather"}',
    ],
)
def test_arguments_are_read_however_written(arguments: str) -> None:
    """Wrong keys, double encoding, cut-off and missing JSON all mean the obvious."""
    assert parse_arguments(arguments).queries == ("weather",)


@pytest.mark.parametrize(
    "arguments", ["", "{", "%%%", "null", '{"queries":', '{"queries": 7}', "[[]]"]
)
def test_arguments_without_a_word_get_the_list(arguments: str) -> None:
    """What cannot be read is answered like what is empty: with what there is to search."""
    assert _search(arguments).text == _search("{}").text
    assert orjson.loads(_search(arguments).text)["groups"] == ["kv"]


def test_names_and_patterns_need_no_json() -> None:
    """They are taken as they stand."""
    assert _search("select:weather,kv__secret_get").new == ("weather", "kv__secret_get")
    assert _search("/^kv__/").new == ("kv__secret_get", "kv__secret_set")


def test_a_query_that_matches_nothing_hears_where_to_look() -> None:
    """Names that are spelled like it, and the groups; never the same words again."""
    answer = orjson.loads(_search('{"queries": ["weathercast9000x"]}').text)
    assert (answer["loaded"], answer["groups"]) == ([], ["kv"])
    assert answer["similar"] == ["weather"]
    assert "Do not repeat" in answer["note"]


@pytest.mark.item(
    "search/limit-zero",
    "search/limit-negative",
    "search/limit-huge",
    "search/limit-text",
)
@pytest.mark.parametrize(
    ("limit", "read"),
    [("3", 3), ('"4"', 4), ("0", 1), ("-1", 1), ("1e9", None), ("10000000", 10), ("true", None)],
)
def test_limits_are_bounded(limit: str, read: int | None) -> None:
    """A silly limit is brought into range or ignored."""
    assert parse_arguments(f'{{"queries":["x"],"limit":{limit}}}').limit == read


@given(st.text())
def test_any_text_is_accepted_as_arguments(text: str) -> None:
    """Reading a call's arguments never fails."""
    assert isinstance(parse_arguments(text), Query)


def test_matches_are_loaded() -> None:
    """A match is named, briefly described and declared callable."""
    found = _search('{"queries":["weather in a city"]}')
    assert found.new == ("weather",)
    assert orjson.loads(found.text) == {
        "loaded": [{"name": "weather", "description": "Current weather of a city."}],
        "note": "These tools can be called now.",
    }


def test_queries_take_turns() -> None:
    """The best match of every query comes before the second best of any."""
    found = _search('{"queries":["secret","weather"]}')
    assert found.new[:2] == ("kv__secret_get", "weather")


@pytest.mark.item("search/only-loaded")
def test_loaded_tools_are_only_named() -> None:
    """What is already in the prompt is not loaded twice."""
    found = _search('{"queries":["weather"]}', loaded=("weather",))
    assert (found.new, found.already) == ((), ("weather",))
    assert orjson.loads(found.text)["already_loaded"] == ["weather"]


@pytest.mark.item("search/same-query")
def test_a_repeated_query_loads_nothing() -> None:
    """Asking again in other word order ends the loop instead of feeding it."""
    asked: set[str] = set()
    _search('{"queries":["store secret"]}', asked=asked)
    found = _search('{"queries":["Secret store"]}', asked=asked)
    assert found.new == ()
    assert "already answered" in orjson.loads(found.text)["note"]


@pytest.mark.item("search/exact-name", "search/wrong-case")
def test_exact_names_are_selected() -> None:
    """`select:` loads precisely what it names, in any spelling."""
    assert _search('{"queries":["select:KV__Secret_Set, weather, nope"]}').new == (
        "kv__secret_set",
        "weather",
    )


def test_regular_expressions_search_names_and_descriptions() -> None:
    """A query between slashes is a pattern."""
    assert _search('{"queries":["/secret_(get|set)/"]}').new == (
        "kv__secret_get",
        "kv__secret_set",
    )


@pytest.mark.item("search/regex-bomb")
@pytest.mark.parametrize("pattern", ["/(/", "/(a+)+$x/", "/(.*)*(.*)*(.*)*Q/"])
def test_bad_patterns_find_nothing(pattern: str) -> None:
    """A broken or exploding pattern costs neither an error nor the request's time."""
    assert _search(orjson.dumps({"queries": [pattern]}).decode()).new == ()


@pytest.mark.item("search/unknown-group")
def test_a_group_narrows_the_search() -> None:
    """Inside a group only its tools are found; an unknown group is ignored."""
    assert set(_search('{"queries":["weather secret"],"group":"KV"}').new) == {
        "kv__secret_get",
        "kv__secret_set",
    }
    assert _search('{"queries":["weather"],"group":"nope"}').new == ("weather",)
    assert _search('{"queries":["weather secret"],"group":"kv__secret_s*"}').new == (
        "kv__secret_set",
    )


def test_a_group_without_query_is_listed() -> None:
    """Asking what a group holds loads nothing."""
    found = _search('{"group":"kv"}')
    assert found.new == ()
    assert orjson.loads(found.text)["names"] == ["kv__secret_get", "kv__secret_set"]
    assert orjson.loads(_search("").text)["groups"] == ["kv"]


def test_no_match_says_so() -> None:
    """The model learns not to repeat the query."""
    found = _search('{"queries":["poetry"]}')
    assert found.new == ()
    assert "Do not repeat" in orjson.loads(found.text)["note"]


def test_whole_schemas_on_request() -> None:
    """Frozen delivery carries each schema as the client wrote it."""
    found = _search('{"queries":["select:kv__secret_get"]}', schemas=True)
    assert '"parameters":{"type":"object","z":1}' in found.text


def test_large_tools_behind_the_best_are_only_named() -> None:
    """One search must not fill the prompt: what is not loaded is a call or a select away."""
    schema = b'{"type":"object","properties":{"x":{"description":"' + b"y" * 3_000 + b'"}}}'
    documents = [
        Document(f"disk_{verb}", "disk", f"{verb} a disk", schema)
        for verb in ("show", "grow", "copy", "wipe")
    ]
    found = search(
        build_lexical(documents),
        Query(("disk",), None, None),
        loaded=(),
        asked=set(),
        limit=4,
        max_new=12,
        schemas=False,
        max_chars=7_000,
    )
    assert len(found.new) == 2
    assert len(orjson.loads(found.text)["not_loaded"]) == 2
    chosen = search(
        build_lexical(documents),
        Query(("select:disk_show,disk_grow,disk_copy",), None, None),
        loaded=(),
        asked=set(),
        limit=4,
        max_new=12,
        schemas=False,
        max_chars=7_000,
    )
    assert len(chosen.new) == 3
