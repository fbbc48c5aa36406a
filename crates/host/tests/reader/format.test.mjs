import assert from "node:assert/strict";
import { test } from "node:test";

import { ago, bytes, count, day, duration, lastSegment, moment, shortPath, titleOf } from "../../web/format.js";

test("durations", () => {
  const shown = [0, 340, 2_149, 59_949, 59_960, 185_000, 7_260_000].map(duration);
  assert.deepEqual(shown, ["0 ms", "340 ms", "2.1 s", "59.9 s", "1 min 0 s", "3 min 5 s", "2 h 1 min"]);
  assert.deepEqual([undefined, null, Number.NaN, -5].map(duration), ["", "", "", ""]);
});

test("sizes and counts", () => {
  assert.deepEqual([0, 999, 1_000, 12_345, 4_200_000].map(bytes), ["0 B", "999 B", "1.0 KB", "12 KB", "4.2 MB"]);
  assert.deepEqual([0, 999, 1_300, 12_345].map(count), ["0", "999", "1.3k", "12k"]);
  assert.equal(bytes(undefined), "");
});

test("days", () => {
  const now = new Date(2026, 2, 10, 0, 30).getTime();
  assert.equal(day(now - 3_600_000, now), "Yesterday");
  assert.equal(day(now, now), "Today");
  assert.equal(day(now + 60_000, now), "Today");
  const lastYear = new Date(2025, 2, 10).getTime();
  for (const shown of [day(lastYear, now), ago(lastYear, now), moment(lastYear, now)]) assert.match(shown, /2025/);
});

test("paths are shown as seen from the session's directory", () => {
  assert.equal(shortPath("/work/demo/src/a.ts", "/work/demo"), "src/a.ts");
  assert.equal(shortPath("/work/demo2/a.ts", "/work/demo/"), "/work/demo2/a.ts");
  assert.equal(shortPath("/etc/hosts", "/"), "/etc/hosts");
  assert.equal(shortPath("work/demo/src/a.ts", "/work/demo"), "src/a.ts", "told from the root, as titles are");
  assert.equal(shortPath("/work/demo", "/work/demo/"), ".");
  assert.equal(shortPath(undefined, "/work"), "");
  assert.equal(lastSegment("/work/demo/"), "demo");
});

test("a title that is a time is no title", () => {
  assert.equal(titleOf({ title: "New session - 2026-11-30T11:13:59.104Z" }), "New session");
  assert.equal(titleOf({ title: "New session - about titles" }), "New session - about titles");
  assert.equal(titleOf({ title: null }), "");
  assert.equal(titleOf(null), "");
});
