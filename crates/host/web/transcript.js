// One session: its last turns first, older ones as the reader scrolls up, newer ones as they come.

import { endWord, isActive, stateWord } from "./activity.js";
import { ApiError, askOpenCode, exportPath, getMessage, getSession, getTurns } from "./api.js";
import { el, fill, icon, withCode } from "./dom.js";
import { follow, pause } from "./follow.js";
import { ago, fullTime, lastSegment, titleOf } from "./format.js";
import { paced } from "./live.js";
import { notice } from "./parts.js";
import { foldTall, replaceTurn, turnElement } from "./turn.js";
import { endOf, isOpen, joinNewer, joinOlder, recordsOf, toTurns } from "./turns.js";
import { WholeMessages } from "./whole.js";

const FIRST_TURNS = 3;
const OLDER_TURNS = 4;
/** How many turns to look back for those that are shown, when a lot was said in the meantime. */
const MISSED_TURNS = 10;
/** A reader this near to the end stays there when something is added. */
const NEAR_END = 80;
/** How long to wait at least between two looks at a session in which much happens, in milliseconds. */
const PACE = 300;
/** How often to say anew how long ago things were, in milliseconds. */
const CLOCK = 30_000;

const view = {
  head: document.getElementById("transcript-head"),
  body: document.getElementById("transcript-body"),
  top: document.getElementById("transcript-top"),
  turns: document.getElementById("turns"),
  end: document.getElementById("transcript-end"),
  news: document.getElementById("transcript-news"),
};

/** Whether the host tells of what happens. */
let isLive = () => false;
/** What sessions do. */
let activity = null;
/** What to call when it was found out what sessions do. */
let foundOut = () => {};

/** Says how to find out whether the host tells of what happens, and where it is kept. */
export function tellLive(told, known, found) {
  [isLive, activity, foundOut] = [told, known, found];
}

/** The session that is shown; a new one for each, so that late answers find the old one gone. */
let current = null;

/** Shows a session, or nothing. */
export function open(id) {
  current?.stop.abort();
  observer.disconnect();
  view.head.hidden = id === null;
  view.news.hidden = true;
  fill(view.turns);
  fill(view.top);
  fill(view.end);
  document.title = "turnkeep";
  if (id === null) {
    current = null;
    fill(view.end, el("div", { class: "empty" }, icon("list"), el("p", {}, "Choose a session to read it.")));
    return;
  }
  const stop = new AbortController();
  const messages = new WholeMessages((message) => getMessage(id, message, stop.signal));
  current = { id, stop, messages, session: null, turns: [], cursor: null, tag: null, isLoading: false, trouble: null, headPrint: null };
  renderHead(current);
  refresh();
}

/** Reads the newest turns, keeps the older ones that are shown, and goes on to do so. */
const refresh = follow(
  async () => {
    if (!current || current.isLoading) return true;
    const shown = current;
    if (shown.session === null) loadSession(shown);
    return await loadNewest(shown);
  },
  (failures) => pause(current !== null && isOpen(current.turns), failures, isLive()),
);

const refreshSoon = paced(refresh, PACE);

/** Looks again, since something happened in a session, or, without one, may have anywhere. */
export function heard(session) {
  if (current !== null && (session === null || session === current.id)) refreshSoon();
}

/** Shows anew what a session does; without one, everything has to be found out anew. */
export function activityChanged(session) {
  if (current === null || (session !== null && session !== current.id)) return;
  if (session === null) findActivity(current);
  if (current.session) renderHead(current);
  if (current.tag === null) return;
  const wasAtEnd = nearEnd();
  arrange(current, current.turns);
  renderEnd(current);
  if (wasAtEnd) scrollToEnd();
}

/** Asks OpenCode once what its session does; from there on events tell. */
async function findActivity(shown) {
  const { id, session } = shown;
  if (!isLive() || !session || session.source === "store") return;
  await activity.find(id, (path) => askOpenCode(path, session.cwd));
  if (shown === current) foundOut(id);
}

async function loadSession(shown) {
  try {
    const session = await getSession(shown.id, shown.stop.signal);
    if (shown !== current) return;
    const [changed, isNew] = [shown.session?.cwd !== session.cwd, shown.session === null];
    shown.session = session;
    if (isNew) findActivity(shown);
    renderHead(shown);
    if (shown.tag !== null) renderEnd(shown);
    if (changed) keepPlace(() => arrange(shown, shown.turns, { anew: true }));
  } catch (error) {
    // The turns say what is wrong; the head does without.
    if (!(error instanceof ApiError) && error.name !== "AbortError") throw error;
  }
}

/** Promises whether there was an answer. */
async function loadNewest(shown) {
  shown.isLoading = true;
  const isFirst = shown.tag === null;
  if (isFirst && shown.trouble === null) fill(view.top, status("Loading the last turns…"));
  try {
    const { tag, body } = await getTurns(shown.id, { turns: FIRST_TURNS }, shown.stop.signal, shown.tag);
    if (shown !== current) return true;
    const hadTrouble = shown.trouble !== null;
    shown.trouble = null;
    if (body === null) {
      if (hadTrouble) renderEnd(shown);
      return true;
    }
    const [page, turns] = await joined(shown, body);
    if (shown !== current) return true;
    const wasAtEnd = isFirst || nearEnd();
    const before = shown.turns.at(-1);
    shown.tag = tag;
    if (page) shown.cursor = page.cursor;
    arrange(shown, turns);
    renderTop(shown);
    renderEnd(shown);
    if (wasAtEnd) scrollToEnd();
    else if (shown.turns.at(-1)?.print !== before?.print) view.news.hidden = false;
    if (isFirst) observer.observe(view.top);
    else loadSession(shown);
    return true;
  } catch (error) {
    if (shown !== current || error.name === "AbortError") return true;
    if (!(error instanceof ApiError)) throw error;
    const isNew = shown.trouble?.message !== error.message;
    shown.trouble = error;
    if (!isFirst) renderEnd(shown);
    else if (isNew) {
      fill(view.top);
      fail(error, view.end, () => {
        shown.trouble = null;
        refresh();
      });
    }
    return false;
  } finally {
    shown.isLoading = false;
  }
}

/**
 * The turns to show now that the newest page is this one, and the page whose cursor leads to what
 * is older than them, unless that stays as it is.
 */
async function joined(shown, newest) {
  if (shown.turns.length === 0) return [newest, toTurns(newest.records)];
  const turns = joinNewer(shown.turns, toTurns(newest.records));
  if (turns !== null) return [null, turns];
  const { body } = await getTurns(shown.id, { turns: MISSED_TURNS }, shown.stop.signal);
  const more = joinNewer(shown.turns, toTurns(body.records));
  return more === null ? [body, toTurns(body.records)] : [null, more];
}

async function loadOlder(shown) {
  if (shown.isLoading || shown.cursor === null) return;
  shown.isLoading = true;
  fill(view.top, status("Loading older turns…"));
  try {
    const { body } = await getTurns(shown.id, { turns: OLDER_TURNS, before: shown.cursor }, shown.stop.signal);
    if (shown !== current) return;
    shown.cursor = body.cursor;
    keepPlace(() => {
      arrange(shown, joinOlder(toTurns(body.records), shown.turns));
      renderTop(shown);
    });
  } catch (error) {
    if (shown !== current || error.name === "AbortError") return;
    if (!(error instanceof ApiError)) throw error;
    fail(error, view.top, () => loadOlder(shown));
    return;
  } finally {
    shown.isLoading = false;
  }
  // Still in sight, so the observer will not tell.
  observer.unobserve(view.top);
  observer.observe(view.top);
}

const observer = new IntersectionObserver(
  (entries) => {
    if (current && entries.some((entry) => entry.isIntersecting)) loadOlder(current);
  },
  { root: view.body, rootMargin: "240px 0px 0px 0px" },
);

function nearEnd() {
  return view.body.scrollHeight - view.body.scrollTop - view.body.clientHeight < NEAR_END;
}

function scrollToEnd() {
  isAtEnd = true;
  view.body.scrollTop = view.body.scrollHeight;
  view.news.hidden = true;
}

view.news.addEventListener("click", scrollToEnd);
view.body.addEventListener("scroll", () => {
  isAtEnd = nearEnd();
  if (isAtEnd) view.news.hidden = true;
});

/** Whether the reader was at the end when it was last scrolled or opened. */
let isAtEnd = true;
// Something that opens at the end leads away from it without scrolling.
view.body.addEventListener("toggle", () => (isAtEnd = nearEnd()), true);
new ResizeObserver(() => {
  if (current !== null && current.tag !== null && isAtEnd) scrollToEnd();
}).observe(view.body);

/** Changes what stands above the reader's place, and leaves the place where it is. */
function keepPlace(change) {
  const fromEnd = view.body.scrollHeight - view.body.scrollTop;
  change();
  view.body.scrollTop = view.body.scrollHeight - fromEnd;
}

/** Shows these turns; only those that changed are made again, or all of them when asked to. */
function arrange(shown, turns, { anew = false } = {}) {
  const before = new Map(shown.turns.map((turn) => [turn.id, turn]));
  const state = activity.of(shown.id);
  const goesOn = isActive(state) || (isOpen(turns) && state !== "idle");
  for (const turn of turns) {
    const isLast = goesOn && turn === turns.at(-1);
    // The turn may be one that is shown, so what it was is looked up before it changes.
    const { print, element } = before.get(turn.id) ?? {};
    turn.print = JSON.stringify([isLast, recordsOf(turn)]);
    turn.element = print === turn.print && !anew ? element : make(shown, turn, isLast);
    before.delete(turn.id);
    if (element && turn.element !== element) replaceTurn(element, turn.element, anew);
  }
  for (const { element } of before.values()) element.remove();
  const added = [];
  turns.forEach(({ element }, at) => {
    if (element.isConnected) return;
    if (at === 0) view.turns.prepend(element);
    else turns[at - 1].element.after(element);
    added.push(element);
  });
  shown.turns = turns;
  added.forEach(foldTall);
}

function make(shown, turn, isLive) {
  const element = turnElement(turn, { cwd: shown.session?.cwd, isLive, messages: shown.messages });
  element.promptPrint = JSON.stringify(turn.prompt);
  return element;
}

function renderHead(shown) {
  const { session } = shown;
  const state = activity.of(shown.id);
  const title = titleOf(session) || shown.id;
  const when = session ? timeOf(session) : null;
  const print = JSON.stringify([title, when?.textContent, state, session && { ...session, updatedAt: null, revision: null }]);
  if (print === shown.headPrint) return;
  shown.headPrint = print;
  if (session) document.title = `${title} · turnkeep`;
  const facts = session
    ? [
        isActive(state) ? el("span", { class: `doing ${state}` }, stateWord(state)) : null,
        session.cwd ? el("span", { title: session.cwd }, lastSegment(session.cwd)) : null,
        when,
        el("span", {}, session.source === "store" ? "session log" : "OpenCode"),
        typeof session.eventCount === "number" ? el("span", {}, `${session.eventCount} events`) : null,
        session.state === "ok" ? null : el("span", { class: `badge ${session.state}` }, session.state),
      ]
    : [];
  fill(
    view.head,
    el("a", { class: "button back", href: "#/", "aria-label": "Back to the sessions" }, icon("back")),
    el("div", { class: "titles" }, el("h1", { title }, title), el("p", { class: "facts" }, facts)),
    session?.source === "store" && session.state === "ok" ? el("a", { class: "button", href: exportPath(shown.id), download: true, title: "Export the session log as a ZIP archive", "aria-label": "Export" }, icon("download")) : null,
    el("button", { class: "button", type: "button", title: "Read the newest turns again", "aria-label": "Read the newest turns again", onclick: refresh }, icon("reload")),
  );
}

function renderTop(shown) {
  if (shown.turns.length === 0) fill(view.top);
  else if (shown.cursor === null) fill(view.top, el("p", { class: "divider" }, el("span", {}, "Beginning of the session")));
  else fill(view.top, el("button", { class: "older", type: "button", onclick: () => loadOlder(shown) }, "Load older turns"));
}

function renderEnd(shown) {
  const { session, trouble } = shown;
  if (trouble !== null) {
    fill(view.end, el("p", { class: "note open", role: "status" }, icon("warning"), el("span", {}, "Not up to date. ", withCode(trouble.message))));
  } else if (session && session.state !== "ok") {
    fill(view.end, notice("warning", "This session cannot be shown as it is", session.reason ? `${session.reason[0].toUpperCase()}${session.reason.slice(1)}.` : ""));
  } else if (shown.turns.length === 0) {
    fill(view.end, el("div", { class: "empty" }, icon("list"), el("p", {}, "Nothing was said in this session yet.")));
  } else {
    const state = activity.of(shown.id);
    const text = endWord(endOf(shown.turns), state);
    // What is said already is not said again.
    if (text !== "" && text === view.end.textContent) return;
    fill(view.end, text === "" ? null : el("p", { class: "note open", role: "status" }, isActive(state) ? el("span", { class: `doing ${state}` }, text) : text));
  }
}

/** When something last happened. The time of a file says when it was copied at best. */
function timeOf(session) {
  const known = session.updatedAtEstimated
    ? [[session.lastPromptAt, "last prompt"], [session.createdAt, "started"]]
    : [[session.updatedAt, "changed"]];
  const [time, what] = known.find(([time]) => typeof time === "number") ?? [];
  return el("span", { title: fullTime(time) }, typeof time === "number" ? `${what} ${ago(time)}` : "");
}

setInterval(() => {
  if (current?.session && document.visibilityState === "visible") renderHead(current);
}, CLOCK);

function fail(error, place, again) {
  const retry = error.isLasting ? null : el("button", { class: "button text", type: "button" }, "Try again");
  retry?.addEventListener("click", () => {
    fill(place);
    again();
  });
  fill(place, el("div", { class: "failure", role: "alert" }, notice("warning", "Not loaded", withCode(error.message)), retry));
}

function status(text) {
  return el("p", { class: "loading", role: "status" }, text);
}
