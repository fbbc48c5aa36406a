// One session: its last turns first, older ones as the reader scrolls up.

import { ApiError, getSession, getTurns } from "./api.js";
import { el, fill, icon } from "./dom.js";
import { ago, count, duration, fullTime, lastSegment, moment, titleOf } from "./format.js";
import { answerParts, diffList, notice, promptParts } from "./parts.js";
import { summarize, toTurns } from "./turns.js";

const FIRST_TURNS = 3;
const OLDER_TURNS = 4;
/** Prompts taller than this many pixels are folded. */
const TALL_PROMPT = 360;
/** How often an unfinished answer is asked for again, in milliseconds. */
const FOLLOW_EVERY = 4000;
/** A reader this near to the end stays there when something is added. */
const NEAR_END = 80;

const view = {
  head: document.getElementById("transcript-head"),
  body: document.getElementById("transcript-body"),
  top: document.getElementById("transcript-top"),
  turns: document.getElementById("turns"),
  end: document.getElementById("transcript-end"),
};

/** The session that is shown; a new one for each, so that late answers find the old one gone. */
let current = null;

/** Shows a session, or nothing. */
export function open(id) {
  current?.stop.abort();
  observer.disconnect();
  view.head.hidden = id === null;
  fill(view.turns);
  fill(view.top);
  fill(view.end);
  if (id === null) {
    current = null;
    document.title = "turnkeep";
    fill(view.end, el("div", { class: "empty" }, icon("list"), el("p", {}, "Choose a session to read it.")));
    return;
  }
  current = { id, stop: new AbortController(), session: null, turns: [], cursor: null, newest: null, loading: false };
  document.title = "turnkeep";
  renderHead(current);
  loadNewest(current);
  loadSession(current);
}

/** Reads the newest turns again and keeps the older ones that are shown. */
export function refresh() {
  if (current && !current.loading) {
    loadSession(current);
    loadNewest(current);
  }
}

async function loadSession(shown) {
  try {
    const session = await getSession(shown.id, shown.stop.signal);
    if (shown !== current) return;
    const changed = shown.session?.cwd !== session.cwd;
    shown.session = session;
    renderHead(shown);
    if (shown.newest !== null) renderEnd(shown);
    if (changed) rerender(shown);
  } catch (error) {
    // The turns say what is wrong; the head does without.
    if (!(error instanceof ApiError) && error.name !== "AbortError") throw error;
  }
}

async function loadNewest(shown) {
  shown.loading = true;
  const first = shown.turns.length === 0;
  if (first) fill(view.top, status("Loading the last turns…"));
  try {
    const page = await getTurns(shown.id, { turns: FIRST_TURNS }, shown.stop.signal);
    if (shown !== current) return;
    const text = JSON.stringify(page);
    if (text === shown.newest) return;
    shown.newest = text;
    const wasAtEnd = isAtEnd();
    const newest = toTurns(page.records);
    const overlap = shown.turns.findIndex((turn) => turn.id === newest[0]?.id);
    if (overlap >= 0) {
      for (const turn of shown.turns.splice(overlap)) turn.element.remove();
      add(shown, newest, "end");
    } else {
      fill(view.turns);
      shown.turns = [];
      shown.cursor = page.cursor;
      add(shown, newest, "end");
    }
    renderTop(shown);
    renderEnd(shown);
    if (first || wasAtEnd) view.body.scrollTop = view.body.scrollHeight;
    if (first) observer.observe(view.top);
  } catch (error) {
    fail(shown, error, first ? view.end : view.top, () => loadNewest(shown));
    if (first) fill(view.top);
  } finally {
    shown.loading = false;
  }
}

async function loadOlder(shown) {
  if (shown.loading || shown.cursor === null) return;
  shown.loading = true;
  fill(view.top, status("Loading older turns…"));
  try {
    const page = await getTurns(shown.id, { turns: OLDER_TURNS, before: shown.cursor }, shown.stop.signal);
    if (shown !== current) return;
    shown.cursor = page.cursor;
    keepPlace(() => {
      add(shown, toTurns(page.records), "start");
      renderTop(shown);
    });
  } catch (error) {
    fail(shown, error, view.top, () => loadOlder(shown));
    return;
  } finally {
    shown.loading = false;
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

function isAtEnd() {
  return view.body.scrollHeight - view.body.scrollTop - view.body.clientHeight < NEAR_END;
}

/** Changes what stands above the reader's place, and leaves the place where it is. */
function keepPlace(change) {
  const fromEnd = view.body.scrollHeight - view.body.scrollTop;
  change();
  view.body.scrollTop = view.body.scrollHeight - fromEnd;
}

function add(shown, turns, where) {
  for (const turn of turns) turn.element = turnElement(turn, shown.session?.cwd);
  const elements = turns.map((turn) => turn.element);
  if (where === "start") {
    view.turns.prepend(...elements);
    shown.turns.unshift(...turns);
  } else {
    view.turns.append(...elements);
    shown.turns.push(...turns);
  }
  for (const element of elements) foldTall(element);
}

/** Shows the turns again, now that the session's directory is known and paths can be shortened. */
function rerender(shown) {
  keepPlace(() => {
    const turns = shown.turns.splice(0);
    fill(view.turns);
    add(shown, turns, "end");
  });
}

function turnElement(turn, cwd) {
  const facts = summarize(turn);
  const answers = answerParts(turn.rest, cwd, facts.diffs.length > 0);
  const created = turn.prompt?.info?.time?.created;
  return el(
    "article",
    { class: "turn", "aria-label": created ? `Turn of ${moment(created)}` : "Turn" },
    turn.prompt
      ? el(
          "section",
          { class: "prompt", "aria-label": "Prompt" },
          el("header", {}, el("span", { class: "who" }, "Prompt"), el("time", { title: fullTime(created) }, moment(created))),
          el("div", { class: "prompt-body" }, promptParts(turn.prompt)),
        )
      : null,
    answers.length > 0 ? el("section", { class: "answer", "aria-label": "Answer" }, answers) : null,
    el("footer", {}, diffList(facts.diffs, cwd), factLine(facts)),
  );
}

function factLine(facts) {
  const said = [
    facts.model,
    duration(facts.duration),
    facts.output > 0 ? `${count(facts.output)} tokens out` : "",
    facts.cost > 0 ? `$${facts.cost.toFixed(facts.cost < 0.1 ? 4 : 2)}` : "",
  ].filter(Boolean);
  return said.length > 0 ? el("p", { class: "facts" }, said.join(" · ")) : null;
}

function foldTall(element) {
  const body = element.querySelector(".prompt-body");
  if (!body || body.scrollHeight <= TALL_PROMPT + 80) return;
  body.classList.add("tall");
  const more = el("button", { class: "unfold", type: "button" }, "Show the whole prompt");
  more.addEventListener("click", () => {
    body.classList.remove("tall");
    more.remove();
  });
  body.after(more);
}

function renderHead(shown) {
  const { session } = shown;
  const title = titleOf(session) || shown.id;
  if (session) document.title = `${title} · turnkeep`;
  const facts = session
    ? [
        session.cwd ? el("span", { title: session.cwd }, lastSegment(session.cwd)) : null,
        el("span", { title: fullTime(session.updatedAt) }, session.updatedAt ? `changed ${ago(session.updatedAt)}` : ""),
        el("span", {}, session.source === "store" ? "session log" : "OpenCode"),
        typeof session.eventCount === "number" ? el("span", {}, `${session.eventCount} events`) : null,
        session.state === "ok" ? null : el("span", { class: `badge ${session.state}` }, session.state),
      ]
    : [];
  fill(
    view.head,
    el("a", { class: "button back", href: "#/", "aria-label": "Back to the sessions" }, icon("back")),
    el("div", { class: "titles" }, el("h1", { title }, title), el("p", { class: "facts" }, facts)),
    el("button", { class: "button", type: "button", title: "Read the newest turns again", "aria-label": "Read the newest turns again", onclick: refresh }, icon("reload")),
  );
}

function renderTop(shown) {
  if (shown.turns.length === 0) fill(view.top);
  else if (shown.cursor === null) fill(view.top, el("p", { class: "divider" }, el("span", {}, "Beginning of the session")));
  else fill(view.top, el("button", { class: "older", type: "button", onclick: () => loadOlder(shown) }, "Load older turns"));
}

function renderEnd(shown) {
  const { session } = shown;
  if (session && session.state !== "ok") {
    fill(view.end, notice("warning", "This session cannot be shown as it is", session.reason ? `${session.reason[0].toUpperCase()}${session.reason.slice(1)}.` : ""));
    return;
  }
  if (shown.turns.length === 0) {
    fill(view.end, el("div", { class: "empty" }, icon("list"), el("p", {}, "Nothing was said in this session yet.")));
    return;
  }
  fill(view.end, isOpen(shown) ? el("p", { class: "note open" }, "The last answer has no end: it is being written, or was cut off.") : null);
}

function isOpen(shown) {
  return shown.turns.length > 0 && summarize(shown.turns.at(-1)).open;
}

// Until the host sends events, an answer that is being written is asked for again.
setInterval(() => {
  if (current && isOpen(current) && document.visibilityState === "visible") refresh();
}, FOLLOW_EVERY);

function fail(shown, error, place, again) {
  if (shown !== current || error.name === "AbortError") return;
  if (!(error instanceof ApiError)) throw error;
  const retry = el("button", { class: "button text", type: "button" }, "Try again");
  retry.addEventListener("click", () => {
    fill(place);
    again();
  });
  fill(place, el("div", { class: "failure", role: "alert" }, notice("warning", "Not loaded", error.message), retry));
}

function status(text) {
  return el("p", { class: "loading", role: "status" }, text);
}
