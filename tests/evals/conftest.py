"""A small labelled set, as an operator would write it."""

from pathlib import Path

import orjson
import pytest

Rows = list[dict[str, object]]

TOOLS: Rows = [
    {"id": "w", "name": "geo__weather_now", "description": "Current weather of a city."},
    {"id": "r", "name": "geo__route_plan", "description": "Plan a route between two places."},
    {
        "id": "m",
        "name": "mail_send",
        "description": "Send an email.",
        "parameters": {"type": "object"},
    },
]
QUERIES: Rows = [
    {"qid": "0", "query": "current weather in the city of Oslo", "gold": [["w"]]},
    {"qid": "1", "query": "plan a route, then send an email", "gold": [["r"], ["m"]]},
    {"qid": "2", "query": "translate this poem", "gold": [["m"]]},
]


def write_lines(path: Path, rows: Rows) -> None:
    path.write_bytes(b"\n".join(orjson.dumps(row) for row in rows))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_lines(tmp_path / "catalogue.jsonl", TOOLS)
    write_lines(tmp_path / "queries.jsonl", QUERIES)
    return tmp_path
