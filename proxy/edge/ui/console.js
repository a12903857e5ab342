// What the admin endpoints answer comes in; tables and timelines go out, as text nodes only.

const KEY = "usher-key";
const NANO = 1e9;
const GROUPS = ["model", "context", "key", "user", "day", "provider"];
const SPANS = { "24h": "last 24 hours", "7d": "last 7 days", "30d": "last 30 days", "": "all time" };
const HEALTH = /^(usher_(?:ledger|in_flight|upstream_errors|state|config_stale|event_loop)[a-z_]*?)(\{.*\})? (\S+)$/;

export const number = (value) => (value === null || value === undefined ? "unknown" : value.toLocaleString("en"));

export function money(nano) {
  if (nano === null || nano === undefined) return "unknown";
  return `$${(nano / NANO).toLocaleString("en", { maximumFractionDigits: 6 })}`;
}

export const moment = (seconds) => new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19);

const span = (ms) => (ms === null || ms === undefined ? "unknown" : ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(2)} s`);

/** A sum that stays unknown when no part of it is known. */
export function total(rows, name) {
  const known = rows.map((row) => row[name]).filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
}

/** Nested facts as flat pairs: {a: {b: 1}} is [["a.b", "1"]]. */
export function flat(value, name = "") {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) {
    if (value.some((part) => part !== null && typeof part === "object"))
      return value.flatMap((part, place) => flat(part, `${name}[${place}]`));
    return value.length ? [[name, value.join(", ")]] : [];
  }
  if (typeof value === "object")
    return Object.entries(value).flatMap(([key, part]) => flat(part, name ? `${name}.${key}` : key));
  return [[name, typeof value === "number" ? String(Math.round(value * 1e4) / 1e4) : String(value)]];
}

/** Where the calls of a turn lie between its beginning and its end, in percent. */
export function lay(calls, startedAt, durationMs) {
  const from = calls.map((call) => (call.started_at - startedAt) * 1000);
  const ends = calls.map((call, place) => from[place] + (call.latency_ms ?? 0));
  const whole = Math.max(durationMs ?? 0, ...ends, 1);
  return calls.map((call, place) => {
    const left = Math.min(99, Math.max(0, (from[place] / whole) * 100));
    return { left, width: Math.min(100 - left, ((call.latency_ms ?? 0) / whole) * 100) };
  });
}

/** The lines of the exposition that say how the gateway is. */
export function readHealth(text) {
  const found = text.split("\n").map((line) => HEALTH.exec(line)).filter(Boolean);
  return found
    .filter(([, name]) => !/_(bucket|created|sum|info)$/.test(name))
    .map(([, name, labels, value]) => ({ name, labels: (labels ?? "").slice(1, -1), value: Number(value) }));
}

export function start(window) {
  const { document, sessionStorage, location } = window;
  const find = (id) => document.getElementById(id);
  let asked = 0;

  function make(tag, props = {}, ...children) {
    const { className, ...attributes } = props;
    const element = document.createElement(tag);
    if (className) element.className = className;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  async function load(path) {
    const key = sessionStorage.getItem(KEY);
    const headers = key ? { authorization: `Bearer ${key}` } : {};
    const reply = await window.fetch(path, { headers, credentials: "omit", cache: "no-store", redirect: "error" });
    if (reply.ok || path.startsWith("../../readyz")) return reply;
    const body = await reply.json().catch(() => ({}));
    throw Object.assign(new Error(body.error?.message ?? `Status ${reply.status}`), { status: reply.status });
  }

  const ask = async (path) => (await load(path)).json();

  function facts(pairs) {
    return make("dl", { className: "facts" }, ...pairs.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  }

  function table(caption, columns, rows) {
    const cell = (tag, column, content) => {
      const props = column.number ? { className: "number" } : {};
      return make(tag, tag === "th" ? { scope: "col", ...props } : props, content);
    };
    const head = make("tr", {}, ...columns.map((column) => cell("th", column, column.title)));
    const body = rows.map((row) => make("tr", {}, ...columns.map((column) => cell("td", column, column.show(row)))));
    return make("div", { className: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      make("table", {}, make("caption", {}, rows.length ? caption : `${caption}: nothing yet`), make("thead", {}, head), make("tbody", {}, ...body)));
  }

  const plain = (name, title = name.replaceAll("_", " ")) => ({ title, show: (row) => row[name] ?? "–" });
  const count = (name, title = name.replaceAll("_", " ")) => ({ title, number: true, show: (row) => number(row[name]) });
  const outcome = (row) => make("span", row.outcome === "ok" ? {} : { className: "bad" }, row.outcome);

  function cards(pairs) {
    return make("dl", { className: "cards" }, ...pairs.map(([name, value, note]) =>
      make("div", { className: "card" }, make("dt", {}, name), make("dd", {}, value), make("small", {}, note))));
  }

  function choice(label, name, options, chosen, query) {
    const select = make("select", { id: name }, ...Object.entries(options).map(([value, text]) =>
      make("option", value === chosen ? { value, selected: "" } : { value }, text)));
    select.addEventListener("change", () => {
      query.set(name, select.value);
      location.hash = `#/usage?${query}`;
    });
    return make("label", {}, `${label} `, select);
  }

  async function showUsage(query) {
    const by = GROUPS.includes(query.get("by")) ? query.get("by") : "model";
    const since = query.has("since") ? query.get("since") : "7d";
    const asking = new URLSearchParams(since ? { by, since } : { by });
    const { usage, savings } = await ask(`../usage?${asking}`);
    const groups = Object.fromEntries(GROUPS.map((name) => [name, name]));
    const without = total(usage, "calls_without_cost") ?? 0;
    return [
      make("div", { className: "choices" }, choice("By", "by", groups, by, query), choice("Of the", "since", SPANS, since, query)),
      cards([
        ["Prompt tokens", number(total(usage, "prompt_tokens")), "measured: as the upstream reported"],
        ["Completion tokens", number(total(usage, "completion_tokens")), "measured"],
        ["Cost", money(total(usage, "cost_nano_usd")), without ? `${number(without)} calls of unknown cost` : "of all calls"],
        ["Tokens avoided", number(total(savings, "tokens_avoided_estimate")), "estimated: schemas not sent"],
        ["Predictions used", number(total(savings, "hits")), `${number(total(savings, "unused"))} unused, ${number(total(savings, "missed"))} missed`],
      ]),
      table("Calls and judgments, measured", [
        plain(by), count("calls"), count("prompt_tokens", "prompt"), count("cached_tokens", "cached"),
        count("completion_tokens", "completion"), { title: "cost", number: true, show: (row) => money(row.cost_nano_usd) },
        count("calls_without_tokens", "tokens unknown"), count("calls_without_cost", "cost unknown"),
      ], usage),
      make("h2", {}, "What was saved"),
      table("Turns", [
        ...(savings[0] && by in savings[0] ? [plain(by)] : []), count("turns"), count("kept"), count("deferred"), count("predicted"),
        count("hits"), count("unused"), count("missed"), count("tokens_avoided_estimate", "tokens avoided (estimated)"),
      ], savings),
    ];
  }

  async function showRequests(query) {
    const before = query.get("before");
    const { requests } = await ask(`../requests?limit=50${before ? `&before=${encodeURIComponent(before)}` : ""}`);
    const link = (row) => make("a", { href: `#/requests/${encodeURIComponent(row.id)}` }, row.id);
    const last = requests.at(-1);
    return [
      table("Turns, newest first (UTC)", [
        { title: "time", show: (row) => moment(row.started_at) }, { title: "request", show: link }, plain("model"), plain("key"), plain("user"),
        { title: "outcome", show: outcome }, { title: "took", number: true, show: (row) => span(row.duration_ms) },
        { title: "kept", number: true, show: (row) => number(row.tools.kept) },
        { title: "deferred", number: true, show: (row) => number(row.tools.deferred) },
        { title: "avoided (estimated)", number: true, show: (row) => number(row.tokens_avoided_estimate) },
      ], requests),
      requests.length === 50 ? make("p", {}, make("a", { href: `#/requests?before=${last.started_at}` }, "Older")) : null,
    ];
  }

  function track({ left, width }) {
    const bar = make("div", { className: "bar" });
    bar.style.left = `${left}%`;
    bar.style.width = `${width}%`;
    return make("div", { className: "track", "aria-hidden": "true" }, bar);
  }

  async function showTurn(id) {
    const turn = await ask(`../requests/${encodeURIComponent(id)}`);
    const places = lay(turn.calls, turn.started_at, turn.duration_ms);
    const calls = turn.calls.map((call, place) => ({ ...call, place: places[place] }));
    const head = { ...turn, started_at: moment(turn.started_at), duration_ms: span(turn.duration_ms) };
    const part = (title, value) => (flat(value).length ? [make("h2", {}, title), make("div", { className: "card" }, facts(flat(value)))] : []);
    const { calls: _, plan, memory, triage, ...rest } = head;
    return [
      make("p", {}, make("a", { href: "#/requests" }, "All requests")),
      make("div", { className: "card" }, facts(flat(rest))),
      make("h2", {}, "Calls"),
      table("In the order in which they began", [
        plain("context"), plain("round"), plain("model"), { title: "outcome", show: outcome }, { title: "when", show: (call) => track(call.place) },
        { title: "took", number: true, show: (call) => span(call.latency_ms) }, count("tools_sent", "tools"), count("prompt_tokens", "prompt"),
        count("completion_tokens", "completion"), { title: "cost", number: true, show: (call) => money(call.cost_nano_usd) },
        { title: "findings", show: (call) => facts(flat(call.detail)) },
      ], calls),
      ...part("Plan", plan), ...part("Memory", memory), ...part("Triage", triage),
    ];
  }

  async function showHealth() {
    const [ready, text, { ledger }] = await Promise.all([
      ask("../../readyz"), load("../../metrics").then((reply) => reply.text()), ask("../usage?since=1m"),
    ]);
    return [
      cards([
        ["Gateway", ready.status, `${number(ready.in_flight)} requests inside`],
        ["Ledger", ledger.degraded ? "degraded" : "ok", ledger.degraded ?? `${number(ledger.pending)} lines wait, ${number(ledger.dropped)} dropped`],
      ]),
      table("Queues and errors, from /metrics", [plain("name"), plain("labels"), count("value")], readHealth(text)),
    ];
  }

  function choose() {
    const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
    const query = new URLSearchParams(search);
    const [page, id] = path.split("/");
    const pages = { requests: () => (id ? showTurn(decodeURIComponent(id)) : showRequests(query)), health: showHealth };
    return { page: page in pages ? page : "usage", show: pages[page] ?? (() => showUsage(query)) };
  }

  async function show() {
    const turn = ++asked;
    const { page, show: render } = choose();
    for (const link of document.querySelectorAll("nav a")) {
      if (link.getAttribute("href") === `#/${page}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    let parts = [], notice = "", locked = false;
    try {
      parts = await render();
    } catch (error) {
      locked = error.status === 401 || error.status === 403;
      notice = error.status === 401 && !sessionStorage.getItem(KEY) ? "" : error.message;
    }
    if (turn !== asked) return;
    find("notice").textContent = notice;
    find("login").hidden = !locked;
    find("leave").hidden = !sessionStorage.getItem(KEY);
    find("main").replaceChildren(...parts.filter((part) => part !== null));
    if (locked) find("key").focus();
  }

  find("login").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY, find("key").value.trim());
    find("key").value = "";
    show();
  });
  find("leave").addEventListener("click", () => {
    sessionStorage.removeItem(KEY);
    find("main").replaceChildren();
    show();
  });
  window.addEventListener("hashchange", show);
  return show();
}
