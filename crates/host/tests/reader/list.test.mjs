import assert from "node:assert/strict";
import { test } from "node:test";

import { amiss, emptyWord, groups, renewed } from "../../web/list.js";

const session = (id, updatedAt, more = {}) => ({ id, updatedAt, title: null, lastPromptAt: null, blank: false, revision: "1", source: "store", ...more });
const ids = (sessions) => sessions.map(({ id }) => id);

test("sessions are grouped by day, those without a time last", () => {
  const now = new Date(2026, 2, 10, 12).getTime();
  const shown = groups([session("hurt", null), session("a", now), session("b", now - 1), session("c", now - 86_400_000)], now);
  assert.deepEqual(shown.map(({ heading, sessions }) => [heading, ...ids(sessions)]), [["Today", "a", "b"], ["Yesterday", "c"], ["Without a date", "hurt"]]);
  assert.deepEqual(groups([], now), []);
});

test("the newest page takes the place of what it covers", () => {
  const shown = [session("a", 9, { title: "A", lastPromptAt: 8 }), session("gone", 10), session("b", 7), session("old", 3), session("hurt", null)];
  const page = { sessions: [session("b", 12), session("new", 11), session("a", 9)], cursor: "more" };
  const now = renewed(shown, page);
  assert.deepEqual(ids(now), ["b", "new", "a", "old", "hurt"]);
  assert.deepEqual([now[2].title, now[2].lastPromptAt], ["A", 8], "what was found out is kept");
  assert.deepEqual(ids(renewed(shown, { ...page, cursor: null })), ["b", "new", "a"]);
});

test("sessions of an OpenCode that does not answer stay in their places", () => {
  const shown = [session("theirs", 10, { source: "upstream" }), session("ours", 5)];
  const page = { sessions: [session("ours", 5)], cursor: null };
  assert.deepEqual(ids(renewed(shown, { ...page, upstream: "unavailable" })), ["theirs", "ours"]);
  assert.deepEqual(ids(renewed(shown, { ...page, upstream: "ok" })), ["ours"]);
});

test("what is amiss fits what is shown", () => {
  const [ours, theirs] = [session("a", 1), session("b", 2, { source: "upstream" })];
  for (const word of ["unavailable", "failed", "what else"]) {
    assert.equal(amiss(word, [ours])[1], "Only stored sessions are listed.");
    assert.equal(amiss(word, [ours, theirs])[1], "Its sessions are shown as they were last.");
  }
  assert.match(amiss("login_refused", [theirs])[1], /PASSWORD/);
});

test("a search that finds nothing says so, with OpenCode or without", () => {
  assert.equal(emptyWord("x", "ok"), "No session mentions that.");
  assert.equal(emptyWord("x", "unavailable"), "No stored session mentions that.");
  assert.equal(emptyWord("", "ok"), "There are no sessions yet.");
  assert.equal(emptyWord("", "unavailable"), "");
});
