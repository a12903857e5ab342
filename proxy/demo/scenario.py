"""A catalogue may come in; prompts, each with the tool that it is about, come out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from proxy.wire import JSONObject


@dataclass(frozen=True, slots=True)
class Prompt:
    """One user message: `expected` is the tool that answers it, None for small talk.

    `follows` continues the conversation of the prompt before; `earlier` is what was said before
    it otherwise. `headers` go along with its requests.
    """

    text: str
    expected: str | None
    follows: bool = False
    earlier: tuple[JSONObject, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


PROMPTS: Final = (
    Prompt("List the storage accounts in my subscription", "storage_account_get"),
    Prompt("Now show me the secrets in the key vault kv-prod", "keyvault_secret_get", follows=True),
    Prompt(
        "thanks, that was really helpful",
        None,
        earlier=(
            {"role": "user", "content": "Can you explain what a closure is?"},
            {"role": "assistant", "content": "A function that remembers where it was made."},
        ),
    ),
    Prompt("サブスクリプション内の仮想マシンの一覧を表示して", "compute_vm_get"),
    # Without prediction the tool can only be found by a search.
    Prompt("Show me my MySQL servers", "mysql_list", headers={"x-usher-predict": "off"}),
)

LARGE_PROMPTS: Final = (
    Prompt("List the open pull requests of the repository octo/website", "list_pull_requests"),
    Prompt("What is the whois record of the domain example.org?", "whois__whois_domain"),
    Prompt("Generate a pie chart of our costs by region", "mcp-server-chart__generate_pie_chart"),
    Prompt("Create a docker container from the nginx image", "docker-mcp__create-container"),
    Prompt("Search arXiv for papers about tool retrieval", "mcp-simple-arxiv__search_papers"),
    Prompt("Show me the secrets in the key vault kv-prod", "keyvault_secret_get"),
    Prompt("サブスクリプション内の仮想マシンの一覧を表示して", "compute_vm_get"),
    Prompt("thanks, that was really helpful", None),
    Prompt("Show me my MySQL servers", "mysql_list", headers={"x-usher-predict": "off"}),
)
"""Requests to many servers at once; all but the last are clear."""
MADE = 5


def fit_prompts(tools: Sequence[JSONObject]) -> tuple[Prompt, ...]:
    """Prompts for any catalogue: those above that it can answer, else made of its descriptions."""
    functions = {tool["function"]["name"]: tool["function"] for tool in tools}
    known = {prompt.text: prompt for prompt in (*PROMPTS, *LARGE_PROMPTS)}
    fitting = [prompt for prompt in known.values() if prompt.expected in functions]
    if len(fitting) >= MADE:
        return tuple(replace(prompt, follows=False) for prompt in fitting)
    described = [(name, _ask(own)) for name, own in functions.items() if own.get("description")]
    step = max(1, len(described) // MADE)
    return tuple(Prompt(text, name) for name, text in described[::step][:MADE])


def _ask(function: JSONObject) -> str:
    """The first sentence of a tool's description, which says what to ask it for."""
    return " ".join(str(function["description"]).split()).partition(". ")[0][:200]
