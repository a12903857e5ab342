"""Nothing comes in; the prompts of the demo, and the tool that each of them is about, come out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
