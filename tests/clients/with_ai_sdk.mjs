// The Vercel AI SDK: generateText and streamText drive the loop.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { key, model, prompt, tools, url, Witness } from "./task.mjs";

const provider = createOpenAICompatible({
  name: "usher",
  baseURL: url,
  apiKey: key,
  includeUsage: true,
});

const declare = (witness) =>
  Object.fromEntries(
    tools.map(({ function: { name, description, parameters } }) => [
      name,
      tool({
        description,
        inputSchema: jsonSchema(parameters),
        execute: async (args) => witness.runTool(name, args),
      }),
    ]),
  );

const ask = (witness) => ({
  model: provider(model),
  prompt,
  tools: declare(witness),
  stopWhen: stepCountIs(6),
  maxRetries: 0,
});

const plain = new Witness("plain");
const result = await generateText(ask(plain));
for (const message of result.response.messages) plain.see(message);
plain.report(result.text, result.totalUsage.totalTokens);

const streamed = new Witness("stream");
const stream = streamText(ask(streamed));
for await (const part of stream.fullStream) {
  if (part.type === "error") throw part.error;
  // The request that a part repeats is the client's own.
  streamed.see({ ...part, request: undefined });
}
streamed.report(await stream.text, (await stream.totalUsage).totalTokens);
