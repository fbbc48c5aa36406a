import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

// Just enough of a document to see what would be in it.
class Node {
  constructor(tag) {
    Object.assign(this, { tag, attributes: {}, children: [], dataset: {}, listeners: {}, classList: { add() {}, remove() {} } });
  }
  setAttribute(name, value) {
    this.attributes[name] = String(value);
  }
  addEventListener(name, listener) {
    this.listeners[name] = listener;
  }
  append(...children) {
    this.children.push(...children);
  }
  prepend(...children) {
    this.children.unshift(...children);
  }
  replaceChildren(...children) {
    this.children = children;
  }
  remove() {
    this.isGone = true;
  }
  focus() {}
  get text() {
    return this.children.map((child) => (typeof child === "string" ? child : child.text)).join("");
  }
  all() {
    return [this, ...this.children.flatMap((child) => (typeof child === "string" ? [] : child.all()))];
  }
}
globalThis.document = { createElement: (tag) => new Node(tag), createElementNS: (_, tag) => new Node(tag) };

const { ApiError } = await import("../../web/api.js");
const { answerParts, diffList, problemOf, promptParts } = await import("../../web/parts.js");
const { longText } = await import("../../web/opened.js");
const { callDetails, fileChip, headline } = await import("../../web/tools.js");
const { WholeMessages } = await import("../../web/whole.js");
const { toTurns } = await import("../../web/turns.js");

const assistant = (...parts) => ({ info: { id: "a", role: "assistant" }, parts });
const classes = (elements) => elements.map((element) => element.attributes.class);
const HOSTILE = `<img src=x onerror=alert(1)> [x](javascript:alert(1)) </code><script>`;

test("calls and thoughts that follow each other make one group", () => {
  const tool = { type: "tool", tool: "bash", state: { status: "completed", input: { command: "ls" }, time: { start: 1, end: 8 } } };
  const shown = answerParts([assistant({ type: "reasoning", slim: true }, tool), assistant(tool, { type: "text", text: "Done." }, tool)], { cwd: "/w" });
  assert.deepEqual(classes(shown), ["rows", "prose", "rows"]);
  assert.equal(shown[0].children.length, 3);
  assert.match(shown[0].text, /bash.*ls.*7 ms/s);
});

test("long groups are folded and nothing of them is lost", () => {
  const tools = Array.from({ length: 20 }, (_, at) => ({ type: "tool", tool: "read", state: { status: "completed", input: { filePath: `/w/${at}` } } }));
  const [group] = answerParts([assistant(...tools)], { cwd: "/w" });
  assert.equal(group.children.length, 8);
  assert.match(group.text, /Show 13 more steps$/);
});

test("while a turn goes on, the newest steps are the ones to see", () => {
  const tools = Array.from({ length: 20 }, (_, at) => ({ type: "tool", tool: "read", state: { status: "completed", input: { filePath: `/w/${at}` } } }));
  const [group] = answerParts([assistant(...tools)], { cwd: "/w", isLive: true });
  assert.match(group.text, /^Show 13 earlier steps.*19/s);
});

const settled = () => new Promise((resolve) => setTimeout(resolve));
const slimTool = { id: "p1", type: "tool", tool: "bash", state: { status: "completed", input: { command: "ls" }, title: "ls" }, slim: true };
const slimThought = { id: "p2", type: "reasoning", slim: true };

test("what a line stands for is asked for when it is opened, once for all of a message", async () => {
  const asked = [];
  const whole = {
    info: {},
    parts: [
      { ...slimTool, slim: undefined, state: { ...slimTool.state, output: "a.txt" } },
      { ...slimThought, text: "Let **me** see." },
    ],
  };
  const messages = new WholeMessages(async (id) => (asked.push(id), whole));
  const records = [assistant(slimTool, slimThought)];
  const [group] = answerParts(records, { cwd: "/w", messages });
  const [call, thought] = group.children;
  assert.deepEqual(asked, []);
  for (const line of [call, thought]) {
    line.open = true;
    line.listeners.toggle();
  }
  assert.match(call.text, /Loading/);
  await settled();
  assert.deepEqual(asked, ["a"]);
  assert.match(call.text, /commandls.*outputa\.txt$/s);
  assert.match(thought.text, /Let me see\.$/);
  const again = answerParts(records, { cwd: "/w", messages })[0];
  assert.match(again.children[0].text, /outputa\.txt$/, "there at once");
  assert.deepEqual(asked, ["a"]);
});

test("a message that cannot be had says why, and can be asked for again", async () => {
  let answer = () => Promise.reject(new ApiError(503, "", "Nobody is there."));
  const messages = new WholeMessages(() => answer());
  const [group] = answerParts([assistant(slimTool)], { messages });
  const [call] = group.children;
  call.open = true;
  call.listeners.toggle();
  await settled();
  assert.match(call.text, /Nobody is there\. Try again$/);
  answer = () => Promise.resolve({ parts: [] });
  call.all().find((element) => element.tag === "button").listeners.click();
  await settled();
  assert.match(call.text, /not in the session any more/);
  answer = () => Promise.reject(new ApiError(404, "not_found", "It is gone."));
  const gone = answerParts([{ ...assistant(slimTool), info: { id: "b" } }], { messages })[0].children[0];
  gone.open = true;
  gone.listeners.toggle();
  await settled();
  assert.match(gone.text, /It is gone\. $/);
});

test("a call shows what it was given and what came of it", () => {
  const state = { status: "error", title: "List it", input: { command: "ls", description: "List it", lines: "a\nb", deep: { x: [1] } }, error: "No such folder" };
  const shown = callDetails({ tool: "bash", state }, "/w");
  assert.ok(!shown.text.includes("title"), "the title is the description");
  assert.match(shown.text, /descriptionList itlinesa\nbdeep\{.*error/s);
  assert.match(shown.text, /errorNo such folder$/);
  assert.match(callDetails({ state: { output: "" } }).text, /outputnothing$/);
  assert.match(callDetails({ state: { input: "cut {" } }).text, /inputcut \{$/);
  for (const odd of [{}, { state: null }, { state: { input: null, metadata: { files: [null, 1] }, attachments: [null, {}] } }]) callDetails(odd);
});

test("the end of a very long text is shown when it is wanted", () => {
  const text = `${"x".repeat(199_999)}\u{1F600}${"y".repeat(99_997)}`;
  const [box, all] = longText(text, "Output");
  assert.equal(box.text.length, 199_999, "not in the middle of a character");
  assert.equal(all.text, "Show all 300 KB");
  all.listeners.click();
  assert.ok(box.text === text && all.isGone);
  assert.equal(longText("short", "Output").text, "short");
});

test("failures, interruptions and what cannot be read stand out", () => {
  assert.match(problemOf({ name: "MessageAbortedError" }).text, /^Interrupted/);
  assert.match(problemOf({ name: "APIError", data: { message: "no" } }).text, /^Failedno$/);
  assert.match(problemOf({ name: "ContextOverflowError" }).text, /^Failed: context overflow/);
  assert.match(problemOf({ name: "TurnkeepUnreadable" }).text, /cannot be read/);
  assert.equal(problemOf(undefined), null);
  const failed = { type: "tool", tool: "edit", state: { status: "error", input: {} } };
  assert.match(answerParts([assistant(failed)], { cwd: "/w" })[0].text, /failed/);
});

test("files say what they are", () => {
  const chip = fileChip({ type: "file", mime: "image/png", filename: "a.png", byteSize: 12_345, width: 24, height: 16 });
  assert.equal(chip.text, "a.pngimage/png · 24 × 16 · 12 KB");
});

test("a picture is looked up when it is opened, and drawn when it is one", async () => {
  const slim = { id: "f1", type: "file", mime: "image/png", filename: "a.png", slim: true };
  for (const [url, drawn] of [
    ["data:image/png;base64,AAAA", true],
    ["data:image/jpeg;base64,AAAA", true],
    ["data:image/svg+xml;base64,AAAA", false],
    ["data:text/html,x", false],
    ["https://example.org/a.png", false],
    [undefined, false],
  ]) {
    const asked = [];
    const messages = new WholeMessages(async (id) => (asked.push(id), { parts: [{ ...slim, slim: undefined, url }] }));
    const [files] = promptParts({ info: { id: "u", role: "user" }, parts: [slim] }, messages);
    const [line] = files.children;
    assert.match(line.text, /^a\.pngimage\/png/);
    assert.deepEqual(asked, []);
    line.open = true;
    line.listeners.toggle();
    await settled();
    const pictures = line.all().filter((element) => element.tag === "img");
    assert.deepEqual(pictures.map(({ attributes }) => [attributes.src, attributes.alt]), drawn ? [[url, "a.png"]] : [], url);
    if (!drawn) assert.match(line.text, /not stored/);
  }
  const [files] = promptParts({ info: { id: "u", role: "user" }, parts: [{ ...slim, mime: "text/plain" }] }, new WholeMessages(async () => ({})));
  assert.equal(files.children[0].tag, "span", "nothing but pictures opens");
});

test("a path in a line is told from the session's folder", () => {
  const of = (tool, state) => headline({ tool, state }, "/w/demo");
  assert.deepEqual(of("read", { input: { filePath: "/w/demo/src/a.ts" } }), { text: "src/a.ts", isPath: true });
  assert.deepEqual(of("edit", { title: "w/demo/src/a.ts" }), { text: "src/a.ts", isPath: true });
  assert.deepEqual(of("edit", { title: "src/a.ts" }), { text: "src/a.ts", isPath: true });
  assert.deepEqual(of("bash", { input: { command: "cat /w/demo/a" } }), { text: "cat /w/demo/a", isPath: false });
  assert.deepEqual(of("task", { title: "Look into it" }), { text: "Look into it", isPath: false });
});

test("changed files are listed with their counts", () => {
  const list = diffList([{ file: "/w/a.ts", status: "modified", additions: 3, deletions: 1 }, { file: "b", status: "added", additions: 2 }], "/w");
  assert.match(list.text, /^2 files changed\+5−1Ma\.ts\+3−1Ab\+2$/);
  assert.equal(diffList([null, "x"], "/w"), null);
});

test("hostile text stays text", () => {
  const records = [
    assistant(
      { type: "text", text: HOSTILE },
      { type: "reasoning", text: HOSTILE },
      { type: "tool", tool: HOSTILE, state: { status: HOSTILE, title: HOSTILE, input: { command: HOSTILE }, output: HOSTILE, metadata: { sessionId: HOSTILE } } },
      { type: "file", filename: HOSTILE, mime: HOSTILE },
      { type: HOSTILE },
    ),
  ];
  const elements = answerParts(records, { cwd: "/w" }).flatMap((element) => element.all());
  const tags = new Set(elements.map((element) => element.tag));
  for (const tag of ["script", "img", "iframe"]) assert.ok(!tags.has(tag), tag);
  for (const element of elements) {
    for (const [name, value] of Object.entries(element.attributes)) {
      assert.ok(!name.startsWith("on"), name);
      if (name === "href") assert.match(value, /^#\/session\/[^/:<> ]+$/);
    }
  }
});

test("odd parts and records do no harm", () => {
  for (const parts of [undefined, null, {}, [null, 1, "x", {}, { type: null }, { type: "tool" }, { type: "tool", state: null }, { type: "text" }, { type: "file" }, { type: "patch" }]]) {
    answerParts([{ info: { id: "a", role: "assistant" }, parts }, {}]);
    promptParts({ info: { id: "u", role: "user" }, parts });
  }
});

test("every record of a real session is shown", () => {
  const url = new URL("../../../../tests/fixtures/opencode/c-kinds/messages.json", import.meta.url);
  const turns = toTurns(JSON.parse(readFileSync(url, "utf8")));
  assert.ok(turns.length > 10);
  const shown = turns.flatMap((turn) => [...(turn.prompt ? promptParts(turn.prompt) : []), ...answerParts(turn.rest, { cwd: "/workspace/demo" })]);
  const text = shown.map((element) => element.text).join("\n");
  for (const expected of ["gradient.png", "Conversation compacted", "failed", "Failed"]) assert.ok(text.includes(expected), expected);
  assert.ok(!text.includes("does not know"));
});
