"""openai-agents: its runner drives the loop."""

import asyncio
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    ModelSettings,
    OpenAIChatCompletionsModel,
    Runner,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from task import KEY, MODEL, PROMPT, URL, Witness, load_tools


async def main() -> None:
    """Both modes."""
    set_tracing_disabled(True)
    async with AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0) as client:
        for mode in ("plain", "stream"):
            await converse(client, Witness(mode))


async def converse(client: AsyncOpenAI, witness: Witness) -> None:
    """One run of an agent that has the whole catalogue."""
    agent = Agent(
        name="clerk",
        tools=[make_tool(tool["function"], witness) for tool in load_tools()],
        model=OpenAIChatCompletionsModel(model=MODEL, openai_client=client),
        model_settings=ModelSettings(include_usage=True),
    )
    result: Any
    if witness.mode == "stream":
        result = Runner.run_streamed(agent, PROMPT)
        async for event in result.stream_events():
            witness.see(event.data if event.type == "raw_response_event" else event.type)
    else:
        result = await Runner.run(agent, PROMPT)
    for item in result.to_input_list():
        witness.see(item)
    witness.report(result.final_output, result.context_wrapper.usage.total_tokens)


def make_tool(function: dict[str, Any], witness: Witness) -> FunctionTool:
    """A tool from its own schema."""

    async def invoke(_: Any, arguments: str) -> str:
        return witness.run_tool(function["name"], arguments)

    return FunctionTool(
        name=function["name"],
        description=function["description"],
        params_json_schema=function["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


if __name__ == "__main__":
    asyncio.run(main())
