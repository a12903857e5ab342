"""pydantic-ai: its agent drives the loop."""

import asyncio
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from task import KEY, MODEL, PROMPT, URL, Witness, load_tools


async def main() -> None:
    """Both modes."""
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=URL, api_key=KEY))
    for mode in ("plain", "stream"):
        await converse(model, Witness(mode))


async def converse(model: OpenAIChatModel, witness: Witness) -> None:
    """One run of an agent that has the whole catalogue."""
    agent = Agent(model, tools=[make_tool(tool["function"], witness) for tool in load_tools()])
    result: Any
    if witness.mode == "stream":
        async with agent.run_stream(PROMPT) as result:
            async for text in result.stream_text(delta=True):
                witness.see(text)
            answer = await result.get_output()
    else:
        result = await agent.run(PROMPT)
        answer = result.output
    for message in result.all_messages():
        witness.see(message)
    usage = result.usage
    usage = usage() if callable(usage) else usage
    witness.report(answer, usage.input_tokens + usage.output_tokens)


def make_tool(function: dict[str, Any], witness: Witness) -> Tool[Any]:
    """A tool from its own schema."""

    def invoke(**arguments: Any) -> str:
        return witness.run_tool(function["name"], arguments)

    return Tool.from_schema(
        invoke,
        name=function["name"],
        description=function["description"],
        json_schema=function["parameters"],
    )


if __name__ == "__main__":
    asyncio.run(main())
