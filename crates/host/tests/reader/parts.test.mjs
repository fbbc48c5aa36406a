import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

// Just enough of a document to see what would be in it.
class Node {
  constructor(tag) {
    Object.assign(this, { tag, attributes: {}, children: [], classList: { add() {}, remove() {} } });
  }
  setAttribute(name, value) {
    this.attributes[name] = String(value);
  }
  addEventListener() {}
  append(...children) {
    this.children.push(...children);
  }
  get text() {
    return this.children.map((child) => (typeof child === "string" ? child : child.text)).join("");
  }
  all() {
    return [this, ...this.children.flatMap((child) => (typeof child === "string" ? [] : child.all()))];
  }
}
globalThis.document = { createElement: (tag) => new Node(tag), createElementNS: (_, tag) => new Node(tag) };

const { answerParts, diffList, fileChip, problemOf, promptParts } = await import("../../web/parts.js");
const { toTurns } = await import("../../web/turns.js");

const assistant = (...parts) => ({ info: { id: "a", role: "assistant" }, parts });
const classes = (elements) => elements.map((element) => element.attributes.class);
const HOSTILE = `<img src=x onerror=alert(1)> [x](javascript:alert(1)) </code><script>`;

test("calls and thoughts that follow each other make one group", () => {
  const tool = { type: "tool", tool: "bash", state: { status: "completed", input: { command: "ls" }, time: { start: 1, end: 8 } } };
  const shown = answerParts([assistant({ type: "reasoning", slim: true }, tool), assistant(tool, { type: "text", text: "Done." }, tool)], "/w", false);
  assert.deepEqual(classes(shown), ["rows", "prose", "rows"]);
  assert.equal(shown[0].children.length, 3);
  assert.match(shown[0].text, /bash.*ls.*7 ms/s);
});

test("long groups are folded and nothing of them is lost", () => {
  const tools = Array.from({ length: 20 }, (_, at) => ({ type: "tool", tool: "read", state: { status: "completed", input: { filePath: `/w/${at}` } } }));
  const [group] = answerParts([assistant(...tools)], "/w", false);
  assert.equal(group.children.length, 8);
  assert.match(group.text, /Show 13 more steps$/);
});

test("failures, interruptions and what cannot be read stand out", () => {
  assert.match(problemOf({ name: "MessageAbortedError" }).text, /^Interrupted/);
  assert.match(problemOf({ name: "APIError", data: { message: "no" } }).text, /^Failedno$/);
  assert.match(problemOf({ name: "ContextOverflowError" }).text, /^Failed: context overflow/);
  assert.match(problemOf({ name: "TurnkeepUnreadable" }).text, /cannot be read/);
  assert.equal(problemOf(undefined), null);
  const failed = { type: "tool", tool: "edit", state: { status: "error", input: {} } };
  assert.match(answerParts([assistant(failed)], "/w", false)[0].text, /failed/);
});

test("files say what they are", () => {
  const chip = fileChip({ type: "file", mime: "image/png", filename: "a.png", byteSize: 12_345, width: 24, height: 16 });
  assert.equal(chip.text, "a.pngimage/png · 24 × 16 · 12 KB");
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
  const elements = answerParts(records, "/w", false).flatMap((element) => element.all());
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
    answerParts([{ info: { id: "a", role: "assistant" }, parts }, {}], undefined, false);
    promptParts({ info: { id: "u", role: "user" }, parts });
  }
});

test("every record of a real session is shown", () => {
  const url = new URL("../../../../tests/fixtures/opencode/c-kinds/messages.json", import.meta.url);
  const turns = toTurns(JSON.parse(readFileSync(url, "utf8")));
  assert.ok(turns.length > 10);
  const shown = turns.flatMap((turn) => [...(turn.prompt ? promptParts(turn.prompt) : []), ...answerParts(turn.rest, "/workspace/demo", false)]);
  const text = shown.map((element) => element.text).join("\n");
  for (const expected of ["gradient.png", "Conversation compacted", "failed", "Failed"]) assert.ok(text.includes(expected), expected);
  assert.ok(!text.includes("does not know"));
});
