import assert from "node:assert/strict";
import { test } from "node:test";

import { label, refusal } from "../../web/login.js";

test("a lock-out is told in minutes, rounded up", () => {
  assert.equal(refusal(429, "900"), "Too many wrong passwords. Try again in 15 minutes.");
  assert.equal(refusal(429, "841"), "Too many wrong passwords. Try again in 15 minutes.");
  assert.equal(refusal(429, "61"), "Too many wrong passwords. Try again in 2 minutes.");
  for (const soon of ["60", "1", null, "soon"]) assert.match(refusal(429, soon), /in a minute\.$/);
});

test("a wrong password or token is called that", () => {
  assert.equal(refusal(401, null), "Wrong password or token.");
});

test("every other refusal is a sentence", () => {
  for (const status of [0, 401, 403, 413, 500, 503]) assert.match(refusal(status, null), /^[A-Za-z].*[.?]$/);
  assert.match(refusal(403, null), /`trusted_proxy`/);
});

test("what is asked for is what there is", () => {
  assert.equal(label({ passwordRequired: true }), "Password or API token");
  assert.equal(label({ passwordRequired: false }), "API token");
  assert.equal(label(null), "Password or API token");
});
