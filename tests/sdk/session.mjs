// One session with OpenCode's published SDK, and what its client saw of it.
//
//     node session.mjs PACKAGES FLAVOUR BASE_URL PROJECT
//
// PACKAGES is where the SDK is installed, FLAVOUR one of its two clients: "default" or "v2". Prints
// one JSON text. Ids, times and paths are replaced by names that are the same for every session
// that goes the same way, so that two runs can be compared.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [packages, flavour, baseUrl, project] = process.argv.slice(2);
const folder = { default: "dist", v2: "dist/v2" }[flavour];
const client = join(packages, "node_modules/@opencode-ai/sdk", folder, "client.js");
const { createOpencodeClient } = await import(pathToFileURL(client));
const opencode = createOpencodeClient({ baseUrl, directory: project });

// ---- both clients called in one way -------------------------------------------------------------

// The older client has {path, query, body}, the newer one has all of it in one object.
function call(method, { path = {}, query = {}, body }) {
  if (flavour === "default") return method({ path, query, body });
  const { id, ...others } = path;
  return method({ ...(id ? { sessionID: id } : {}), ...others, ...query, ...body });
}

const session = Object.fromEntries(
  [
    "create", "list", "get", "update", "delete", "prompt", "promptAsync", "abort", "messages",
    "message", "diff", "children", "todo", "status",
  ].map((name) => [name, (given = {}) => call((it) => opencode.session[name](it), given)]),
);

// ---- the session --------------------------------------------------------------------------------

const seen = [];
function note(what, { data, error, response }) {
  seen.push({ what, status: response?.status, data, error });
  return data;
}

const ends = new Map();
const ended = (type, id) =>
  new Promise((resolve) => ends.set(type, (event) => event.properties.sessionID === id && resolve()));

const stop = new AbortController();
const events = [];
const subscribed = await opencode.event.subscribe(flavour === "v2" ? {} : { signal: stop.signal },
  flavour === "v2" ? { signal: stop.signal } : undefined);
let connected;
const isConnected = new Promise((resolve) => (connected = resolve));
const listening = (async () => {
  for await (const event of subscribed.stream) {
    if (event.type === "server.connected") connected();
    events.push(event);
    ends.get(event.type)?.(event);
  }
})();
await isConnected;

const made = note("create", await session.create({ body: { title: "A session" } }));
const path = { id: made.id };
const text = (prompt) => ({ parts: [{ type: "text", text: prompt }] });

let idle = ended("session.idle", made.id);
note("prompt", await session.prompt({ path, body: text("Look around. #steps=2 #tools=write,bash #reason") }));
await idle;
note("get", await session.get({ path }));
const listed = note("list", await session.list());
seen.at(-1).data = listed.filter((other) => other.id === made.id);
const messages = note("messages", await session.messages({ path }));
note("newest", await session.messages({ path, query: { limit: 2 } }));
for (const message of messages) {
  note("message", await session.message({ path: { ...path, messageID: message.info.id } }));
}
note("diff", await session.diff({ path, query: { messageID: messages[0].info.id } }));
note("children", await session.children({ path }));
note("todo", await session.todo({ path }));
note("update", await session.update({ path, body: { title: "Another name" } }));

idle = ended("session.idle", made.id);
const busy = ended("message.part.delta", made.id);
note("promptAsync", await session.promptAsync({ path, body: text("Take your time. #steps=0 #slow=300 #chunks=200") }));
await busy;
const status = note("status", await session.status());
seen.at(-1).data = status[made.id];
note("abort", await session.abort({ path }));
await idle;
const after = note("after", await session.messages({ path }));
// How far the answer had come is a matter of time.
for (const part of after.at(-1).parts) if (part.type === "text") part.text = "cut off";

const deleted = ended("session.deleted", made.id);
note("delete", await session.delete({ path }));
// The event names its session in another place.
await Promise.race([deleted, new Promise((resolve) => setTimeout(resolve, 300))]);
note("gone", await session.get({ path }));
note("missing", await session.messages({ path: { id: "ses_nobody" } }));
stop.abort();
await listening.catch(() => {});

// ---- what of it can be compared -----------------------------------------------------------------

const names = new Map();
const named = (kind, value) => {
  const key = `${kind}:${value}`;
  if (!names.has(key)) names.set(key, `<${kind} ${[...names.keys()].filter((it) => it.startsWith(`${kind}:`)).length + 1}>`);
  return names.get(key);
};

const TIMES = ["created", "updated", "completed", "start", "end", "time"];
function plain(value, key) {
  if (Array.isArray(value)) return value.map((item) => plain(item, key));
  if (value && typeof value === "object") {
    const entries = Object.entries(value).filter(([name]) => !["patch", "hasDiffs", "diffCount"].includes(name));
    return Object.fromEntries(entries.map(([name, item]) => [name, plain(item, name)]));
  }
  if (typeof value === "number" && TIMES.includes(key)) return "<time>";
  if (["snapshot", "hash", "slug", "projectID", "ref"].includes(key)) return `<${key}>`;
  if (typeof value !== "string") return value;
  return value
    .replaceAll(project, "<project>")
    .replace(/\b(ses|msg|prt|evt)_[0-9A-Za-z]+/g, (id, kind) => (id.endsWith("nobody") ? id : named(kind, id)))
    .replace(/\bcall_[0-9A-Za-z_-]+/g, (id) => named("call", id));
}

// Messages and parts in the order in which they came. One step's deltas may come in one or several.
const stories = new Map();
for (const { type, properties } of events) {
  if (!/^(message|session)\./.test(type) || type === "session.deleted") continue;
  const of = properties.part?.id ?? properties.partID ?? properties.info?.id ?? properties.sessionID;
  const steps = stories.get(of) ?? [];
  stories.set(of, steps);
  if (type === "message.part.delta" && steps.at(-1)?.type === type) continue;
  steps.push({ type });
}
const story = (steps) => [...new Set(steps.map((step) => step.type))];
const told = [...stories.values()].map(story);

console.log(JSON.stringify({ seen: seen.map((it) => plain(it)), told }));
process.exit(0);
