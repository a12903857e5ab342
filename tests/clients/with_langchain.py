"""langchain-openai: a chat model with bound tools."""

from functools import reduce
from operator import add
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from task import KEY, MODEL, PROMPT, URL, Witness, load_tools

MAX_REQUESTS = 6


def main() -> None:
    """Both modes."""
    settings: dict[str, Any] = {"api_key": KEY, "stream_usage": True, "max_retries": 0}
    model = ChatOpenAI(model=MODEL, base_url=URL, **settings).bind_tools(load_tools())
    for mode in ("plain", "stream"):
        converse(model, Witness(mode))


def converse(model: Any, witness: Witness) -> None:
    """Ask, run the called tools, ask again."""
    messages: list[Any] = [HumanMessage(PROMPT)]
    tokens = 0
    for _ in range(MAX_REQUESTS):
        reply = ask(model, witness, messages)
        tokens += reply.usage_metadata["total_tokens"]
        messages.append(reply)
        if not reply.tool_calls:
            return witness.report(reply.content, tokens)
        for call in reply.tool_calls:
            result = witness.run_tool(call["name"], call["args"])
            messages.append(ToolMessage(result, tool_call_id=call["id"]))
    raise SystemExit("the conversation did not end")


def ask(model: Any, witness: Witness, messages: list[Any]) -> Any:
    """One request; chunks are added up the way LangChain does it."""
    if witness.mode == "plain":
        reply = model.invoke(messages)
        witness.see(reply)
        return reply
    chunks = list(model.stream(messages))
    for chunk in chunks:
        witness.see(chunk)
    return reduce(add, chunks)


if __name__ == "__main__":
    main()
