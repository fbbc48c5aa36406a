import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { follow, pause } from "../../web/follow.js";

test("what is under way is asked for more often, and silence is given time", () => {
  assert.deepEqual([pause(true, 0), pause(false, 0)], [2000, 5000]);
  assert.deepEqual([1, 2, 3, 4, 5, 60].map((failures) => pause(true, failures)), [5000, 10_000, 20_000, 40_000, 60_000, 60_000]);
});

class Page extends EventTarget {
  visibilityState = "visible";
  become(state) {
    this.visibilityState = state;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

const settled = async () => {
  for (let at = 0; at < 10; at += 1) await null;
};

test("asks while somebody looks, at once when somebody looks again, never twice at a time", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const page = new Page();
  let [asked, answer] = [0, true];
  const waits = [];
  const now = follow(async () => ((asked += 1), answer), (failures) => (waits.push(failures), 1000), page);
  mock.timers.tick(1000);
  await settled();
  mock.timers.tick(999);
  assert.equal(asked, 1);
  mock.timers.tick(1);
  await settled();
  assert.equal(asked, 2);
  page.become("hidden");
  mock.timers.tick(60_000);
  assert.equal(asked, 2);
  answer = false;
  page.become("visible");
  await settled();
  assert.equal(asked, 3);
  mock.timers.tick(1000);
  await settled();
  assert.deepEqual(waits.slice(-2), [1, 2], "so many times without an answer");
  now();
  now();
  assert.equal(asked, 5);
  await settled();
  assert.equal(asked, 6, "what was wanted meanwhile is asked for afterwards");
  mock.timers.reset();
});
