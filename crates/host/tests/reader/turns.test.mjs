import assert from "node:assert/strict";
import { test } from "node:test";

import { isOpen, isPrompt, joinNewer, joinOlder, summarize, toTurns } from "../../web/turns.js";

const user = (id, parts = [{ type: "text", text: "x" }]) => ({ info: { id, role: "user", time: { created: 100 } }, parts });
const answer = (id, info = {}) => ({ info: { id, role: "assistant", ...info }, parts: [] });

test("a prompt is what a person wrote", () => {
  assert.ok(isPrompt(user("a")));
  assert.ok(isPrompt(user("a", [])));
  assert.ok(isPrompt({ info: { id: "a", role: "assistant", clientRole: "user" } }));
  assert.ok(isPrompt(user("a", [{ type: "text", synthetic: true }, { type: "file" }])));
  assert.ok(isPrompt(user("a", [null, { synthetic: true }])));
  assert.ok(!isPrompt(user("a", [{ type: "text", synthetic: true }])));
  assert.ok(!isPrompt(user("a", [{ type: "text" }, { type: "subtask" }])));
  assert.ok(!isPrompt(user("a", [{ type: "compaction" }])));
  assert.ok(!isPrompt(user("oc_asst_session_divider:1")));
  assert.ok(!isPrompt({ info: { id: "a", role: "user", clientRole: "" } }));
  assert.ok(!isPrompt({}));
});

test("a turn is a prompt and everything up to the next", () => {
  const records = [answer("a0"), user("u1"), answer("a1"), user("s", [{ synthetic: true }]), answer("a2"), user("u2")];
  const turns = toTurns(records).map((turn) => [turn.id, turn.prompt?.info.id ?? null, turn.rest.map((record) => record.info.id)]);
  assert.deepEqual(turns, [
    ["a0", null, ["a0"]],
    ["u1", "u1", ["a1", "s", "a2"]],
    ["u2", "u2", []],
  ]);
});

test("a turn is summed up over its answers", () => {
  const first = answer("a1", { tokens: { output: 5 }, cost: 0.5, time: { completed: 300 } });
  const last = answer("a2", { modelID: "m", tokens: { output: 7 }, cost: 0.25, time: { completed: 1100 } });
  const [turn] = toTurns([user("u"), first, last]);
  assert.deepEqual(summarize(turn), { model: "m", duration: 1000, output: 12, cost: 0.75, diffs: [], open: false });
});

test("a turn is open while its last answer is", () => {
  const open = (info) => summarize(toTurns([user("u"), answer("a", info)])[0]).open;
  assert.ok(open({ time: { created: 1 } }));
  assert.ok(!open({ time: { created: 1, completed: 2 } }));
  assert.ok(!open({ finish: "stop" }));
  assert.ok(!open({ error: { name: "MessageAbortedError" } }));
  assert.ok(!summarize(toTurns([user("u")])[0]).open);
});

const shape = (turns) => turns.map((turn) => [turn.prompt?.info.id ?? null, ...turn.rest.map((record) => record.info.id)]);

test("the newest page is joined to what is shown", () => {
  const shown = toTurns([user("u1"), answer("a1"), user("u2"), answer("a2")]);
  const newest = toTurns([user("u2"), answer("a2"), answer("a3"), user("u3")]);
  assert.deepEqual(shape(joinNewer(shown, newest)), [["u1", "a1"], ["u2", "a2", "a3"], ["u3"]]);
  assert.equal(joinNewer(shown, toTurns([user("u8")])), null);
  assert.deepEqual(shape(joinNewer([], newest)), shape(newest));
  // A page that begins within a long turn.
  assert.deepEqual(shape(joinNewer(shown, toTurns([answer("a2"), answer("a3")]))), [["u1", "a1"], ["u2", "a2", "a3"]]);
  const headless = toTurns([answer("a1"), answer("a2")]);
  assert.deepEqual(shape(joinNewer(headless, toTurns([answer("a2"), answer("a3")]))), [[null, "a1", "a2", "a3"]]);
});

test("an older page is joined to what is shown", () => {
  const older = toTurns([user("u1"), answer("a1")]);
  assert.deepEqual(shape(joinOlder(older, toTurns([answer("a2"), user("u2")]))), [["u1", "a1", "a2"], ["u2"]]);
  assert.deepEqual(shape(joinOlder(older, toTurns([user("u2")]))), [["u1", "a1"], ["u2"]]);
});

test("more is to come after a prompt and after an answer without an end", () => {
  assert.ok(isOpen(toTurns([user("u1")])));
  assert.ok(isOpen(toTurns([user("u1"), answer("a1", { time: { created: 1 } })])));
  assert.ok(!isOpen(toTurns([user("u1"), answer("a1", { time: { created: 1, completed: 2 } })])));
  assert.ok(!isOpen([]));
});
