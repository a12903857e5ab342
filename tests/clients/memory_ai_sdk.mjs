// The Vercel AI SDK streams turns that store, delete and fail to store memories.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";
import { converse, key, url } from "./memory_task.mjs";

await converse("ai-sdk", "stream", async (says, headers, artifacts) => {
  const provider = createOpenAICompatible({ name: "usher", baseURL: url, apiKey: key, headers });
  const stream = streamText({
    model: provider("standin"),
    prompt: says,
    maxRetries: 0,
    includeRawChunks: true,
  });
  for await (const part of stream.fullStream) {
    if (part.type === "error") throw part.error;
    if (part.type === "raw") artifacts.push(...(part.rawValue.usher?.memory ?? []));
  }
  return stream.text;
});
