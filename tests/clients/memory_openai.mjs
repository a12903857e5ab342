// The official JavaScript SDK streams turns that store, delete and fail to store memories.
import OpenAI from "openai";
import { converse, key, url } from "./memory_task.mjs";

const client = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 });
const body = (says) => ({
  model: "standin",
  stream: true,
  messages: [{ role: "user", content: says }],
});
const find = (chunk) => chunk.usher?.memory ?? [];

await converse("openai-js", "iterate", async (says, headers, artifacts) => {
  let text = "";
  for await (const chunk of await client.chat.completions.create(body(says), { headers })) {
    text += chunk.choices[0].delta.content ?? "";
    artifacts.push(...find(chunk));
  }
  return text;
});

await converse("openai-js", "helper", async (says, headers, artifacts) => {
  const runner = client.chat.completions.stream(body(says), { headers });
  runner.on("chunk", (chunk) => artifacts.push(...find(chunk)));
  return runner.finalContent();
});
