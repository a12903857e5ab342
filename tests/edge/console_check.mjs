// The console's script against a document, a fetch and a session storage of its own.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const { flat, lay, money, number, readHealth, start, total } = await import(pathToFileURL(process.argv[2]));

class Element {
  constructor(tag) {
    Object.assign(this, { tag, children: [], attributes: {}, style: {}, listeners: {}, hidden: false, value: "" });
  }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  getAttribute(name) { return this.attributes[name] ?? null; }
  removeAttribute(name) { delete this.attributes[name]; }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  addEventListener(name, listener) { this.listeners[name] = listener; }
  focus() { this.focused = true; }
  set textContent(text) { this.children = [text]; }
  get text() { return this.children.map((child) => (child instanceof Element ? child.text : String(child))).join(" "); }
  all(tag) {
    return this.children.flatMap((child) => (child instanceof Element ? [...(child.tag === tag ? [child] : []), ...child.all(tag)] : []));
  }
}

function browser(answer, hash = "", key = null) {
  const byId = Object.fromEntries(["login", "key", "leave", "notice", "main"].map((id) => [id, new Element(id)]));
  const links = ["usage", "requests", "health"].map((page) => {
    const link = new Element("a");
    link.setAttribute("href", `#/${page}`);
    return link;
  });
  const stored = new Map(key ? [["usher-key", key]] : []);
  const sent = [];
  const window = {
    document: { getElementById: (id) => byId[id], createElement: (tag) => new Element(tag), querySelectorAll: () => links },
    sessionStorage: { getItem: (k) => stored.get(k) ?? null, setItem: (k, v) => stored.set(k, v), removeItem: (k) => stored.delete(k) },
    location: { hash },
    addEventListener: (_, listener) => { window.moved = listener; },
    fetch: async (path, options) => {
      sent.push({ path, options });
      const { status = 200, body } = answer(path, options);
      return { ok: status < 400, status, json: async () => body, text: async () => body };
    },
  };
  return { window, byId, links, stored, sent };
}

const EVIL = "<img src=x onerror=alert(1)>";
const USAGE = {
  usage: [
    { model: EVIL, calls: 2, prompt_tokens: 1000, cached_tokens: null, completion_tokens: 5, cost_nano_usd: null, calls_without_cost: 2, calls_without_tokens: 0 },
    { model: "m", calls: 1, prompt_tokens: 500, cached_tokens: 1, completion_tokens: 5, cost_nano_usd: 2_500_000, calls_without_cost: 0, calls_without_tokens: 0 },
  ],
  savings: [{ model: EVIL, turns: 2, kept: 1, deferred: 9, predicted: 1, hits: 1, unused: 0, missed: 0, tokens_avoided_estimate: 4321 }],
  ledger: { pending: 0, dropped: 0, degraded: null },
};
const TURN = {
  id: "req_1", tenant: "t", key: "k", user: null, model: "m", started_at: 100, duration_ms: 1000, outcome: "ok",
  tools: { kept: 1 }, plan: { delivery: "append" }, memory: null, triage: { plan: "p1" },
  calls: [
    { context: "classification", round: 1, model: "judge", outcome: "ok", started_at: 100, latency_ms: 250, cost_nano_usd: 0, detail: { answers: { needs_tool: 0.9312 } } },
    { context: "main", round: 1, model: "m", outcome: "http_500", started_at: 100.25, latency_ms: 750, cost_nano_usd: null, detail: null },
  ],
};

// numbers: unknown is never shown as 0
assert.equal(number(null), "unknown");
assert.equal(money(null), "unknown");
assert.equal(money(2_500_000), "$0.0025");
assert.equal(total([{ a: null }, {}], "a"), null);
assert.equal(total([{ a: null }, { a: 2 }], "a"), 2);
assert.deepEqual(flat({ a: { b: 0.123456 }, c: ["x", "y"], d: null, e: [{ f: true }] }), [["a.b", "0.1235"], ["c", "x, y"], ["e[0].f", "true"]]);
assert.deepEqual(lay(TURN.calls, 100, 1000), [{ left: 0, width: 25 }, { left: 25, width: 75 }]);
assert.deepEqual(readHealth('# HELP usher_ledger_degraded x\nusher_ledger_degraded 1.0\nusher_upstream_errors_total{kind="a"} 3.0\npython_gc 1\n'), [
  { name: "usher_ledger_degraded", labels: "", value: 1 }, { name: "usher_upstream_errors_total", labels: 'kind="a"', value: 3 },
]);

// usage: text only, measured and estimated apart
{
  const { window, byId, links, sent } = browser(() => ({ body: USAGE }));
  await start(window);
  assert.equal(sent[0].path, "../usage?by=model&since=7d");
  assert.deepEqual(sent[0].options.headers, {});
  assert.match(byId.main.text, /1,500.*measured.*\$0\.0025.*2 calls of unknown cost.*4,321.*estimated/s);
  assert.ok(byId.main.text.includes(EVIL));
  assert.equal(byId.main.all("img").length, 0);
  assert.equal(links[0].getAttribute("aria-current"), "page");
}

// login: the key goes into the session and a header, never into a URL
{
  const reject = { status: 401, body: { error: { message: "no key" } } };
  const { window, byId, stored, sent } = browser((_, { headers }) => (headers.authorization === "Bearer sk-usher-x" ? { body: USAGE } : reject));
  await start(window);
  assert.equal(byId.login.hidden, false);
  assert.ok(byId.key.focused);
  byId.key.value = " sk-usher-x ";
  byId.login.listeners.submit({ preventDefault() {} });
  await new Promise((done) => setTimeout(done, 10));
  assert.equal(byId.login.hidden, true);
  assert.equal(stored.get("usher-key"), "sk-usher-x");
  assert.equal(byId.key.value, "");
  assert.ok(sent.every(({ path }) => !path.includes("sk-usher")));
  assert.ok(sent.every(({ options }) => options.credentials === "omit"));
  byId.leave.listeners.click();
  await new Promise((done) => setTimeout(done, 10));
  assert.equal(stored.size, 0);
  assert.equal(byId.main.children.length, 0);
}

// a key that is no admin's is told so
{
  const { window, byId } = browser(() => ({ status: 403, body: { error: { message: "This needs an admin key." } } }), "", "sk-usher-y");
  await start(window);
  assert.equal(byId.notice.text, "This needs an admin key.");
  assert.equal(byId.login.hidden, false);
}

// the list, and one turn with its probabilities
{
  const { window, byId, sent } = browser((path) => ({ body: path.startsWith("../requests?") ? { requests: [{ ...TURN, tokens_avoided_estimate: null }] } : TURN }), "#/requests");
  await start(window);
  assert.equal(byId.main.all("a")[0].getAttribute("href"), "#/requests/req_1");
  window.location.hash = "#/requests/req_1";
  await window.moved();
  assert.equal(sent.at(-1).path, "../requests/req_1");
  assert.match(byId.main.text, /classification.*answers\.needs_tool.*0\.9312.*http_500.*unknown.*delivery.*append.*Triage/s);
  assert.deepEqual(byId.main.all("div").filter((part) => part.className === "bar").map((part) => part.style.left), ["0%", "25%"]);
}

// health: a degraded ledger is seen
{
  const answers = {
    "../../readyz": { status: 503, body: { status: "draining", in_flight: 2 } },
    "../../metrics": { body: "usher_ledger_degraded 1.0\n" },
    "../usage?since=1m": { body: { ...USAGE, ledger: { pending: 3, dropped: 0, degraded: "disk full" } } },
  };
  const { window, byId } = browser((path) => answers[path], "#/health");
  await start(window);
  assert.match(byId.main.text, /draining.*2 requests.*degraded.*disk full.*usher_ledger_degraded/s);
}
