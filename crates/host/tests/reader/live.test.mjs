import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { listen, paced, sessionOf } from "../../web/live.js";

test("an event names its session in one of several places", () => {
  for (const [type, properties] of [
    ["message.part.delta", { sessionID: "s" }],
    ["message.part.updated", { part: { sessionID: "s" } }],
    ["message.updated", { info: { id: "m", sessionID: "s" } }],
    ["session.updated", { info: { id: "s" } }],
  ]) {
    assert.equal(sessionOf({ type, properties }), "s", type);
  }
  for (const payload of [undefined, {}, { type: "server.connected", properties: {} }, { type: "project.updated", properties: { info: { id: "p" } } }]) {
    assert.equal(sessionOf(payload), null);
  }
});

test("what is asked too often is done once more, at the end", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  let done = 0;
  const ask = paced(() => (done += 1), 300);
  ask();
  assert.equal(done, 1);
  for (let times = 0; times < 5; times += 1) ask();
  assert.equal(done, 1);
  mock.timers.tick(300);
  assert.equal(done, 2);
  mock.timers.tick(900);
  assert.equal(done, 2);
  ask();
  assert.equal(done, 3);
  mock.timers.reset();
});

class Page extends EventTarget {
  visibilityState = "visible";

  turn(state) {
    this.visibilityState = state;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

function opened() {
  const streams = [];
  const open = (url) => {
    const stream = { url, readyState: 0, close: () => (stream.readyState = 2) };
    streams.push(stream);
    return stream;
  };
  return [streams, open];
}

test("sessions are told of, and what may have been missed", () => {
  const [streams, open] = opened();
  const heard = [];
  const isLive = listen((session) => heard.push(session), { page: new Page(), open });
  assert.equal(isLive(), false);
  streams[0].onopen();
  assert.equal(isLive(), true);
  streams[0].onmessage({ data: JSON.stringify({ directory: "/p", payload: { type: "session.idle", properties: { sessionID: "s" } } }) });
  streams[0].onmessage({ data: JSON.stringify({ payload: { type: "server.heartbeat", properties: {} } }) });
  streams[0].onmessage({ data: JSON.stringify({ payload: { type: "turnkeep.reset", properties: { reason: "too_old" } } }) });
  assert.deepEqual(heard, [null, "s", null]);
});

test("nobody listens on a page that nobody sees", () => {
  const [streams, open] = opened();
  const page = new Page();
  const isLive = listen(() => {}, { page, open });
  streams[0].onopen();
  page.turn("hidden");
  assert.equal(streams[0].readyState, 2);
  assert.equal(isLive(), false);
  page.turn("visible");
  assert.equal(streams.length, 2);
});

test("a stream that was refused is asked for again later", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const [streams, open] = opened();
  listen(() => {}, { page: new Page(), open });
  streams[0].readyState = 0;
  streams[0].onerror();
  mock.timers.tick(60_000);
  assert.equal(streams.length, 1, "the browser tries by itself");
  streams[0].readyState = 2;
  streams[0].onerror();
  mock.timers.tick(15_000);
  assert.equal(streams.length, 2);
  mock.timers.reset();
});
