"""Tools come in; what one long conversation costs with each delivery goes out."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from proxy.demo.gateway import serve_gateway
from proxy.demo.play import Player
from proxy.demo.scenario import Prompt
from proxy.ledger.store import UsageQuery
from proxy.settings import Deferral
from proxy.wire import JSONObject

CACHED_PRICE: Final = 0.1
"""Price of a cached prompt token, an uncached one being 1: OpenAI's and Anthropic's share."""

_TALK: Final = (
    "thanks, that was really helpful",
    "Why is the sky blue?",
    "Tell me a joke.",
    "Who wrote Faust?",
    "Thank you, that helps.",
    "How do you say good morning in Italian?",
    "Please say that again in simpler words.",
    "Is a tomato a fruit?",
)
_TASKS: Final = (
    ("List the storage accounts in my subscription", "storage_account_get"),
    ("Show me the secrets in the key vault kv-prod", "keyvault_secret_get"),
    ("Show me my MySQL servers", "mysql_list"),
    ("List all AKS clusters in my subscription", "aks_cluster_get"),
)
_DELIVERIES: Final = {
    "off": Deferral(mode="off"),
    "append": Deferral(delivery="append"),
    "frozen": Deferral(delivery="frozen"),
}


def make_conversation() -> list[Prompt]:
    """Twelve user turns of one conversation; every third one needs a tool, four tools in all."""
    prompts: list[Prompt] = []
    talk = iter(_TALK)
    for task, tool in _TASKS:
        prompts.append(Prompt(task, tool, follows=bool(prompts)))
        prompts.extend(Prompt(next(talk), None, follows=True) for _ in range(2))
    return prompts


def compare_costs(tools: list[JSONObject]) -> JSONObject:
    """What the conversation costs with everything off, `append` and `frozen`.

    `cost` is in uncached prompt tokens: those that the stand-in's simulated prefix cache did not
    know, and a tenth of those that it did.
    """
    bills = {name: _bill(tools, settings) for name, settings in _DELIVERIES.items()}
    off = bills["off"]["cost"]
    for bill in bills.values():
        bill["of_off"] = round(bill["cost"] / off, 4)
    return {"turns": len(make_conversation()), "cached_price": CACHED_PRICE, **bills}


def _bill(tools: list[JSONObject], settings: Deferral) -> JSONObject:
    prompts = make_conversation()
    with TemporaryDirectory() as folder, serve_gateway(Path(folder), settings) as live:
        played = Player(live, tools).play(prompts)
        usage = asyncio.run(live.gateway.ledger.usage(UsageQuery(by=("context",))))
    prompt, cached = _sum(usage, "prompt_tokens"), _sum(usage, "cached_tokens")
    return {
        "calls": _sum(usage, "calls"),
        "prompt_tokens": prompt,
        "cached_tokens": cached,
        "cost": round(prompt - cached + CACHED_PRICE * cached),
        "right_tools": [t.called for t in played] == [_expected(prompt) for prompt in prompts],
    }


def _expected(prompt: Prompt) -> tuple[str, ...]:
    return () if prompt.expected is None else (prompt.expected,)


def _sum(usage: Sequence[JSONObject], name: str) -> int:
    return sum(row[name] or 0 for row in usage)
