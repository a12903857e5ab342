"""The official Python SDK: plain requests, and the streaming helper."""

from typing import Any

from openai import OpenAI
from task import KEY, MODEL, PROMPT, URL, Witness, load_tools

MAX_REQUESTS = 6


def main() -> None:
    """Both modes, with the loop that an application writes itself."""
    with OpenAI(base_url=URL, api_key=KEY, max_retries=0) as client:
        for mode, ask in (("plain", ask_plain), ("stream", ask_streaming)):
            converse(client, Witness(mode), ask)


def converse(client: OpenAI, witness: Witness, ask: Any) -> None:
    """Ask, run the called tools, ask again."""
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    tokens = 0
    for _ in range(MAX_REQUESTS):
        completion = ask(client, witness, messages)
        tokens += completion.usage.total_tokens
        message = completion.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return witness.report(message.content, tokens)
        assert completion.choices[0].finish_reason == "tool_calls"
        for call in message.tool_calls:
            result = witness.run_tool(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    raise SystemExit("the conversation did not end")


def ask_plain(client: OpenAI, witness: Witness, messages: list[Any]) -> Any:
    """One request."""
    create: Any = client.chat.completions.create
    completion = create(model=MODEL, messages=messages, tools=load_tools())
    witness.see(completion)
    return completion


def ask_streaming(client: OpenAI, witness: Witness, messages: list[Any]) -> Any:
    """One request through the SDK's helper, which puts the chunks together."""
    stream: Any = client.chat.completions.stream
    options = {"include_usage": True}
    with stream(
        model=MODEL, messages=messages, tools=load_tools(), stream_options=options
    ) as events:
        for event in events:
            witness.see(event)
        return events.get_final_completion()


if __name__ == "__main__":
    main()
