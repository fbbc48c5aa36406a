// A scripted language model for the tests against a real OpenCode server.
//
// It speaks the streaming chat-completions protocol on loopback, and what it says is decided by
// the conversation alone: the last prompt is the script, and the number of answers since that
// prompt is the place in it. A server that was killed and started again is therefore answered as
// if nothing had happened. (`#fail` is the one thing that is remembered.)
//
//     PROJECT=/some/folder node model.mjs      prints {"port":N} once it listens
//
// It ends when its standard input does, so it cannot outlive the process that started it.
//
// Directives a prompt can carry, anywhere in its text:
//
//     #steps=N       answers that call tools before the closing one (default 2; 0 for none)
//     #tools=A,B     what those steps call, in turn: read write edit bash todo grep glob task
//                    error (default read,write,edit,bash,todo; error is an edit that cannot work)
//     #parallel=N    calls in each of those answers (default 1)
//     #reason        each answer starts with reasoning
//     #chunks=N      pieces of the closing text (default 4)
//     #slow=MS       wait before each piece of an answer
//     #output=LINES  lines that bash prints
//     #file=LINES    lines of the files that write makes
//     #sleep=S       seconds that bash takes
//     #fail=N        the first N requests for this prompt get 503 and the advice to retry
//     #status=CODE   each request for this prompt gets this HTTP status
//     #cut           the closing answer ends for want of room (finish reason "length")
import { createHash } from "node:crypto";
import { createServer } from "node:http";

const project = process.env.PROJECT ?? process.cwd();
const defaultTools = ["read", "write", "edit", "bash", "todo"];

// ---- the script -------------------------------------------------------------------------------

function parseScript(prompt) {
  const given = new Map();
  for (const [, key, value] of prompt.matchAll(/#([a-z]+)(?:=([\w,]+))?/g)) given.set(key, value);
  const count = (key, fallback) => {
    const value = Number.parseInt(given.get(key) ?? "", 10);
    return Number.isNaN(value) ? fallback : value;
  };
  return {
    steps: count("steps", 2),
    tools: given.get("tools")?.split(",") ?? defaultTools,
    parallel: Math.max(1, count("parallel", 1)),
    reason: given.has("reason"),
    chunks: count("chunks", 4),
    slow: count("slow", 0),
    output: count("output", 3),
    file: count("file", 5),
    sleep: count("sleep", 0),
    fail: count("fail", 0),
    status: count("status", 0),
    cut: given.has("cut"),
  };
}

const withoutDirectives = (text) => text.replace(/#[a-z]+(=[\w,]+)?/g, "").trim();

// Sentences that look like an agent's and depend on the seed alone. Some carry characters that
// take two, three and four bytes, or two UTF-16 units.
function* sentences(seed) {
  const openings = ["Checked", "Rewrote", "Compared", "Traced", "Renamed", "Measured", "Split"];
  const objects = ["the parser", "each façade", "the naïve path", "row → column", "the cache"];
  const endings = ["and it holds ✓", "without surprises", "against the log", "twice 𝄞", "in place"];
  for (let turn = 0; ; turn++) {
    const digest = createHash("sha256").update(`${seed}/${turn}`).digest();
    const pick = (list, at) => list[digest[at] % list.length];
    yield `${pick(openings, 0)} ${pick(objects, 1)} ${pick(endings, 2)} (${digest.toString("hex", 3, 6)}).`;
  }
}

function take(count, source) {
  return Array.from({ length: count }, () => source.next().value);
}

// ---- what each kind of step calls -------------------------------------------------------------

// All calls of one turn, step by step. `key` names the turn's own file, so that turns of one
// project do not edit each other's.
function planCalls(script, key) {
  const file = `${project}/notes/${key}.md`;
  const voice = sentences(key);
  let revision = -1; // of the turn's own file; -1: there is none yet

  const makers = {
    read: () => ["read", { filePath: `${project}/README.md` }],
    write: () => {
      revision = 0;
      const body = take(script.file, voice).map((line, at) => `${at + 1}. ${line}`);
      return ["write", { filePath: file, content: ["revision 0", ...body, ""].join("\n") }];
    },
    edit: () => {
      const oldString = revision < 0 ? "" : `revision ${revision}`;
      revision += 1;
      return ["edit", { filePath: file, oldString, newString: `revision ${revision}` }];
    },
    bash: () => {
      const print = `for n in $(seq ${script.output}); do echo "line $n of ${script.output}"; done`;
      const command = script.sleep > 0 ? `sleep ${script.sleep}; ${print}` : print;
      return ["bash", { command, description: "Print some lines" }];
    },
    todo: () => {
      const [first, second] = take(2, voice);
      const todos = [
        { content: first, status: "completed", priority: "high" },
        { content: second, status: "in_progress", priority: "low" },
      ];
      return ["todowrite", { todos }];
    },
    grep: () => ["grep", { pattern: "revision", include: "*.md" }],
    glob: () => ["glob", { pattern: "**/*.md" }],
    task: () => {
      const prompt = `Look through the notes of ${key}. #steps=1 #tools=read`;
      return ["task", { description: "Look through the notes", prompt, subagent_type: "general" }];
    },
    error: () => {
      const filePath = `${project}/README.md`;
      return ["edit", { filePath, oldString: `nothing says ${key}`, newString: "never written" }];
    },
  };

  return Array.from({ length: script.steps }, (_, step) =>
    Array.from({ length: script.parallel }, (_, lane) => {
      const kind = script.tools[(step * script.parallel + lane) % script.tools.length];
      const make = makers[kind];
      if (!make) throw new Error(`#tools names "${kind}", which is none of ${Object.keys(makers)}`);
      const [name, args] = make();
      return { id: `call_${key}_${step}_${lane}`, name, args: JSON.stringify(args) };
    }),
  );
}

// ---- from a request to an answer --------------------------------------------------------------

function textOf(message) {
  if (typeof message.content === "string") return message.content;
  if (!Array.isArray(message.content)) return "";
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
}

// Pictures that a tool returned come back as a message in the user's name.
const isPrompt = (message) =>
  message.role === "user" && !/^Attached (image|media)/.test(textOf(message));

function locate(messages) {
  const at = messages.findLastIndex(isPrompt);
  const prompt = at < 0 ? "" : textOf(messages[at]);
  const step = messages.slice(at + 1).filter((message) => message.role === "assistant").length;
  return { prompt, step, turn: messages.filter(isPrompt).length };
}

// An answer: `reasoning` and `text` are lists of pieces, `calls` a list of tool calls.
function answer(request, session) {
  const { prompt, step, turn } = locate(request.messages);
  const script = parseScript(prompt);
  const key = createHash("sha256").update(`${session}/${turn}/${prompt}`).digest("hex").slice(0, 10);

  // Without tools the server asks for a title (of the small model) or for a summary.
  if (!request.tools?.length) {
    if (request.model === "scripted-small") {
      const words = withoutDirectives(prompt).split(/\s+/).slice(-6);
      return { prompt, script: parseScript(""), text: [words.join(" ") || "Untitled"] };
    }
    const voice = sentences(`summary/${turn}`);
    return { prompt, script, text: ["## Goal\n\n", ...take(script.chunks, voice)] };
  }

  const voice = sentences(`${key}/${step}`);
  const reasoning = script.reason ? take(3, voice) : [];
  const calls = planCalls(script, key)[step];
  if (calls) {
    const text = step % 2 === 0 ? [] : take(1, voice);
    return { prompt, script, reasoning, text, calls };
  }
  const text = take(script.chunks, voice).map((line, at) => (at % 3 === 2 ? `\n\n- ${line} ` : `${line} `));
  return { prompt, script, reasoning, text };
}

function pieces(text, size) {
  return text.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? [];
}

function* deltas({ reasoning = [], text = [], calls = [] }) {
  yield { role: "assistant", content: "" };
  for (const piece of reasoning) yield { reasoning_content: `${piece} ` };
  for (const piece of text) yield { content: piece };
  for (const [index, call] of calls.entries()) {
    const opening = { name: call.name, arguments: "" };
    yield { tool_calls: [{ index, id: call.id, type: "function", function: opening }] };
    for (const piece of pieces(call.args, 256)) {
      yield { tool_calls: [{ index, function: { arguments: piece } }] };
    }
  }
}

function usageOf(request, { reasoning = [], text = [], calls = [] }) {
  const input = 1000 + 50 * request.messages.length;
  const thought = reasoning.join("").length >> 2;
  const output = 10 + thought + (text.join("").length >> 2) + (JSON.stringify(calls).length >> 2);
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: input - 500 },
    completion_tokens_details: { reasoning_tokens: thought },
  };
}

// ---- the wire ---------------------------------------------------------------------------------

const refusals = new Map(); // prompt → requests refused so far, for #fail
let answers = 0;

function refuse(response, status, message, headers = {}) {
  const error = { message, type: status < 500 ? "invalid_request_error" : "server_error" };
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ error }));
}

const pause = (ms) => new Promise((resume) => setTimeout(resume, ms));

async function complete(request, session, response) {
  const reply = answer(request, session);
  const { script, prompt } = reply;

  const refused = refusals.get(prompt) ?? 0;
  if (refused < script.fail) {
    refusals.set(prompt, refused + 1);
    return refuse(response, 503, "overloaded, try again", { "retry-after-ms": "200" });
  }
  if (script.status) return refuse(response, script.status, "the script refuses this prompt");

  const head = { id: `answer-${++answers}`, created: 0, model: request.model };
  const closing = script.cut ? "length" : "stop";
  const finish_reason = reply.calls ? "tool_calls" : closing;
  const usage = usageOf(request, reply);

  if (!request.stream) {
    const tool_calls = reply.calls?.map((call) => ({
      id: call.id,
      type: "function",
      function: { name: call.name, arguments: call.args },
    }));
    const message = { role: "assistant", content: reply.text.join(""), tool_calls };
    response.writeHead(200, { "content-type": "application/json" });
    const choices = [{ index: 0, message, finish_reason }];
    response.end(JSON.stringify({ ...head, object: "chat.completion", choices, usage }));
    return;
  }

  let open = true;
  response.on("close", () => (open = false));
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (fields) => {
    const chunk = { ...head, object: "chat.completion.chunk", ...fields };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  for (const delta of deltas(reply)) {
    if (script.slow) await pause(script.slow);
    if (!open) return;
    send({ choices: [{ index: 0, delta, finish_reason: null }] });
  }
  send({ choices: [{ index: 0, delta: {}, finish_reason }] });
  send({ choices: [], usage });
  response.end("data: [DONE]\n\n");
}

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString("utf8"));
}

const server = createServer(async (request, response) => {
  if (request.method === "GET" && request.url === "/health") return response.end("ok\n");
  if (request.method !== "POST" || request.url !== "/v1/chat/completions") {
    return refuse(response, 404, "no such route");
  }
  try {
    await complete(await bodyOf(request), request.headers["x-session-id"] ?? "", response);
  } catch (problem) {
    console.error(problem);
    if (response.headersSent) response.destroy();
    else refuse(response, 400, `the script is wrong: ${problem.message}`);
  }
});

server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));
process.stdin.on("end", () => process.exit(0)).resume();
