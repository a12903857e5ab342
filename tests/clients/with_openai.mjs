// The official JavaScript SDK: its runner drives the loop.
import OpenAI from "openai";
import { key, model, prompt, tools, url, Witness } from "./task.mjs";

const client = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 });

for (const mode of ["plain", "stream"]) {
  const witness = new Witness(mode);
  const stream = mode === "stream";
  const runner = client.chat.completions.runTools({
    model,
    stream,
    ...(stream && { stream_options: { include_usage: true } }),
    messages: [{ role: "user", content: prompt }],
    tools: tools.map(({ function: declared }) => ({
      type: "function",
      function: {
        ...declared,
        parse: JSON.parse,
        function: (args) => witness.runTool(declared.name, args),
      },
    })),
  });
  if (stream) runner.on("chunk", (chunk) => witness.see(chunk));
  runner.on("message", (message) => witness.see(message));
  const answer = await runner.finalContent();
  witness.report(answer, (await runner.totalUsage()).total_tokens);
}
