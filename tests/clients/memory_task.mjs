// What the JavaScript clients need to have things remembered, and how they tell what they saw.
import { readFileSync } from "node:fs";

export const url = process.env.CLIENT_URL;
export const key = "client-key";
export const turns = JSON.parse(readFileSync(process.env.CLIENT_TURNS, "utf8"));

/** Run all turns of a user; `ask(says, headers, artifacts)` returns the text. */
export async function converse(client, mode, ask) {
  const user = `${client}-${mode}`;
  const headers = { "x-usher-user-id": user };
  for (const { says, fill } of turns) {
    if (fill) await put(headers, fill);
    const artifacts = [];
    const text = await ask(says, headers, artifacts);
    const told = artifacts.map((one) => one.error_type ?? one.type);
    console.log(JSON.stringify({ mode, told, text }));
  }
}

async function put(headers, value) {
  const address = `${url.replace(/\/v1$/, "")}/usher/memory/long`;
  const answer = await fetch(address, {
    method: "PUT",
    headers: { ...headers, authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ value }),
  });
  if (!answer.ok) throw new Error(`the memory was not stored: ${answer.status}`);
}
