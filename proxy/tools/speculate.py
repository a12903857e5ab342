"""Names that a frozen delivery has to show come in; a search that found them goes out."""

from collections.abc import Sequence

import orjson

from proxy.tools.rank import Index
from proxy.tools.search import SELECT, Query, search
from proxy.wire import JSONObject


def write_search(
    index: Index, names: Sequence[str], search_name: str, link: str
) -> tuple[JSONObject, JSONObject]:
    """The assistant's call and its result, just as a real search would have left them.

    They depend on the catalogue, the names and the conversation up to them (`link`, its hash)
    alone, so that every later request puts back the same bytes at the same place.
    """
    query = f"{SELECT}{','.join(names)}"
    found = search(
        index,
        Query((query,), None, len(names)),
        loaded=(),
        asked=set(),
        limit=len(names),
        max_new=len(names),
        schemas=True,
    )
    call_id = f"call_{link[:24]}"
    call = {
        "id": call_id,
        "type": "function",
        "function": {"name": search_name, "arguments": orjson.dumps({"queries": [query]}).decode()},
    }
    return (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": found.text},
    )
