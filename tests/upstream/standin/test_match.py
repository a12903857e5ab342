"""Finding the tool that a request is about."""

import gzip
import json
from pathlib import Path

import pytest

from proxy.upstream.standin.match import Offer, choose, name_score, rank_first, read_purpose
from proxy.upstream.standin.words import weigh
from proxy.wire import JSONObject

BLOBS = Offer("storage_blob_get", "List the blobs of a container.", {})
CONTAINERS = Offer("storage_container_get", "List the containers of a storage account.", {})
DELETE = Offer("storage_blob_delete", "Delete a blob.", {})
OFFERS = (CONTAINERS, BLOBS, DELETE)


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        ("Show me the blobs in the container logs", BLOBS),
        ("Which containers are there?", CONTAINERS),
        ("Please remove the blob a.txt", DELETE),
        ("thanks, that was really helpful", None),
        ("Which resource group is it?", None),
    ],
)
def test_the_fitting_tool_is_chosen_and_small_talk_chooses_none(
    request_text: str, expected: Offer | None
) -> None:
    """A tool has to share a thing with the request, an action or a place is not enough."""
    assert choose(OFFERS, weigh(request_text)) == expected


def test_the_choice_does_not_depend_on_the_other_tools() -> None:
    """The same tool wins against one rival and against many, in any order."""
    wanted = weigh("delete the blob a.txt")
    assert choose((BLOBS, DELETE), wanted) == choose(tuple(reversed(OFFERS)), wanted) == DELETE


def test_equals_go_to_the_first() -> None:
    """Nothing about a choice is random."""
    twin = Offer("storage_blob_get", "List the blobs of a container.", {"twin": True})
    assert rank_first((BLOBS, twin), weigh("show blobs")) is BLOBS


def test_no_tools_no_choice() -> None:
    """An empty list is no error."""
    assert choose((), weigh("show blobs")) is None


def test_a_missing_action_in_the_name_costs() -> None:
    """Of two equal names the one without a foreign action says more."""
    wanted = weigh("show blobs")
    scores = [name_score(read_purpose(o.name, "").name, frozenset(), wanted) for o in OFFERS[1:]]
    assert scores[0] > scores[1]


def test_real_prompts_find_their_tool_in_the_real_catalogue() -> None:
    """On the demo's catalogue, for prompts that people wrote for it."""
    raw = gzip.decompress(Path("proxy/demo/azure_235_tools.json.gz").read_bytes())
    offers = [_offer(tool["function"]) for tool in json.loads(raw)]
    prompts = {
        "List all Event Grid topics in my subscription": "eventgrid_topic_list",
        "Delete firewall rule office for SQL server db1": "sql_server_firewall-rule_delete",
        "Show me the schema of table t in the MySQL database d": "mysql_table_schema_get",
        "What secrets are in the key vault prod?": "keyvault_secret_get",
    }
    found = {prompt: choose(offers, weigh(prompt)) for prompt in prompts}
    assert {prompt: best.name if best else None for prompt, best in found.items()} == prompts


def _offer(function: JSONObject) -> Offer:
    return Offer(function["name"], function["description"], function["parameters"])
