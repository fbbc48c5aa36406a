import assert from "node:assert/strict";
import { test } from "node:test";

import { isPrompt, summarize, toTurns } from "../../web/turns.js";

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
