// What every JavaScript client is asked to do, and how it tells what it saw.
import { readFileSync } from "node:fs";

export const url = process.env.CLIENT_URL;
export const prompt = process.env.CLIENT_PROMPT;
export const model = "standin";
export const key = "client-key";
export const tools = JSON.parse(readFileSync(process.env.CLIENT_TOOLS, "utf8"));

/** One conversation: the calls that the client ran, and everything that it was shown. */
export class Witness {
  called = [];
  seen = [];

  constructor(mode) {
    this.mode = mode;
  }

  runTool(name, args) {
    if (typeof args !== "object" || args === null) throw new Error(`arguments of ${name}`);
    this.called.push(name);
    return JSON.stringify({ tool: name, items: 3 });
  }

  see(event) {
    this.seen.push(JSON.stringify(event));
  }

  /** `tokens` is the total usage that the client knows of. */
  report(answer, tokens) {
    const leaked = this.seen.some((text) => text?.includes("tool_search"));
    const { mode, called, seen } = this;
    console.log(JSON.stringify({ mode, called, answer, tokens, leaked, events: seen.length }));
  }
}
