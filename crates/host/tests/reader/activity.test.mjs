import assert from "node:assert/strict";
import { test } from "node:test";

import { Activity, endWord, isActive, stateWord } from "../../web/activity.js";

const status = (sessionID, type) => ({ type: "session.status", properties: { sessionID, status: { type } } });
const idle = (sessionID) => ({ type: "session.idle", properties: { sessionID } });
// As OpenCode sends them.
const asked = (sessionID, id) => ({ type: "permission.asked", properties: { id, sessionID, permission: "bash", patterns: ["git status --short"], metadata: {}, always: [] } });
const replied = (sessionID, requestID) => ({ type: "permission.replied", properties: { sessionID, requestID, reply: "once" } });
const says = (statuses, requests = []) => async (path) => ({ "session/status": statuses, permission: requests })[path];

test("events tell what a session does", () => {
  const activity = new Activity();
  assert.equal(activity.of("s"), "unknown");
  assert.equal(activity.take(status("s", "busy")), true);
  assert.equal(activity.take(status("s", "busy")), false, "nothing new");
  assert.deepEqual([activity.of("s"), activity.of("t")], ["busy", "unknown"]);
  activity.take(status("s", "retry"));
  assert.equal(activity.of("s"), "retry");
  assert.equal(activity.take(idle("s")), true);
  assert.equal(activity.of("s"), "idle");
  activity.forget();
  assert.equal(activity.of("s"), "unknown");
});

test("a session waits until each of its requests is answered, or it is through", () => {
  const activity = new Activity();
  activity.take(status("s", "busy"));
  activity.take(asked("s", "p1"));
  activity.take(asked("s", "p2"));
  assert.equal(activity.take(replied("s", "p1")), false);
  assert.equal(activity.of("s"), "waiting");
  assert.equal(activity.take(replied("s", "p2")), true);
  assert.equal(activity.of("s"), "busy");
  activity.take(asked("s", "p3"));
  activity.take(idle("s"));
  assert.equal(activity.of("s"), "idle");
});

test("what is asked for names those that do something", async () => {
  const activity = new Activity();
  await activity.find("s", says({ t: { type: "busy" }, u: { type: "busy" } }, [{ id: "p", sessionID: "u" }]));
  assert.deepEqual(["s", "t", "u", "v"].map((id) => activity.of(id)), ["idle", "busy", "waiting", "unknown"]);
});

test("no answer, or a strange one, says nothing", async () => {
  for (const strange of [null, [], "x", { s: null }, { s: { type: "dancing" } }]) {
    const activity = new Activity();
    await activity.find("s", says(strange, [null, {}, { id: 1, sessionID: "s" }]));
    assert.equal(activity.of("s"), "unknown", JSON.stringify(strange));
  }
  const activity = new Activity();
  for (const payload of [undefined, null, {}, { type: "session.status" }, status("s", "dancing"), status(1, "busy")]) assert.equal(activity.take(payload), false);
});

test("an answer is older than the events that arrived before it", async () => {
  const activity = new Activity();
  const found = activity.find("s", says({ t: { type: "busy" } }, [{ id: "p", sessionID: "t" }, { id: "q", sessionID: "u" }]));
  activity.take(status("s", "busy"));
  activity.take(idle("t"));
  activity.take(replied("u", "q"));
  await found;
  assert.deepEqual(["s", "t", "u"].map((id) => activity.of(id)), ["busy", "idle", "unknown"]);
  const late = activity.find("s", says({}));
  activity.forget();
  await late;
  assert.equal(activity.of("s"), "unknown", "it was asked before something may have been missed");
});

test("the end of a transcript says what is known", () => {
  assert.deepEqual(["busy", "retry", "waiting"].map((state) => endWord("closed", state)), ["Writing…", "Trying again…", "Waiting for a permission"]);
  assert.equal(endWord("open", "busy"), "Writing…");
  assert.equal(endWord("open", "idle"), "The last answer has no end: it was cut off.");
  assert.equal(endWord("open", "unknown"), "The last answer has no end: it is being written, or was cut off.");
  assert.equal(endWord("unanswered", "unknown"), "There is no answer yet.");
  assert.equal(endWord("unanswered", "idle"), "There is no answer.");
  for (const state of ["idle", "unknown"]) assert.deepEqual([endWord("closed", state), stateWord(state), isActive(state)], ["", "", false]);
});
