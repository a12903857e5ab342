"""A chat request comes in; whether an application made it for itself goes out.

Requests for titles, tags and follow-up questions quote the conversation. Judging them again would
run the memory agent on the application's words.
"""

import re
from collections.abc import Sequence

from proxy.plan.chain import read_text
from proxy.wire import JSONObject

_TASK = re.compile(
    r"^\s*(?:#+\s*task|you are (?:an? )?(?:\w+ )?(?:title|tag|summar)\w*)"
    r"|\b(?:generate|create|write|provide|suggest|return)\b.{0,80}\b(?:title|tags?|follow-?up|"
    r"search quer(?:y|ies)|autocompletion|emoji)\b"
    r".{0,400}(?:conversation|chat|history|message|user:)",
    re.IGNORECASE | re.DOTALL,
)
_PASTED = re.compile(
    r"<chat_history>|<conversation>|### chat history|^\s*(?:user|human|USER)\s*:",
    re.IGNORECASE | re.MULTILINE,
)
_LOOKED_AT = 4_000


def is_auxiliary(body: JSONObject, messages: Sequence[JSONObject]) -> bool:
    """Whether a request is an application's own, as far as it shows."""
    metadata = body.get("metadata")
    if isinstance(metadata, dict) and metadata.get("task"):
        return True
    said = [message for message in messages if message.get("role") in ("user", "assistant")]
    if len(said) != 1:
        return False
    text = "\n".join(read_text(message.get("content"))[:_LOOKED_AT] for message in messages)
    return bool(_TASK.search(text)) and bool(_PASTED.search(text))
