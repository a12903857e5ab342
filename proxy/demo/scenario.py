"""Nothing comes in; the prompts of the demo, and the tool that each of them is about, come out."""

from dataclasses import dataclass
from typing import Final

from proxy.wire import JSONObject


@dataclass(frozen=True, slots=True)
class Prompt:
    """One user message: `expected` is the tool that answers it, None for small talk.

    `follows` continues the conversation of the prompt before; `earlier` is what was said before
    it otherwise.
    """

    text: str
    expected: str | None
    follows: bool = False
    earlier: tuple[JSONObject, ...] = ()


PROMPTS: Final = (
    Prompt("List the storage accounts in my subscription", "storage_account_get"),
    Prompt("Now show me the secrets in the key vault kv-prod", "keyvault_secret_get", follows=True),
    Prompt(
        "thanks, that was really helpful",
        None,
        earlier=(
            {"role": "user", "content": "What does a storage account cost?"},
            {"role": "assistant", "content": "That depends on its size and its redundancy."},
        ),
    ),
    Prompt("サブスクリプション内の仮想マシンの一覧を表示して", "compute_vm_get"),
    Prompt("Which redis caches do I have?", "redis_list"),
)
