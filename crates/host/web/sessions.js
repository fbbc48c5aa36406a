// The list of sessions.

import { isActive, stateWord } from "./activity.js";
import { ApiError, getSession, listSessions } from "./api.js";
import { el, fill, icon, withCode } from "./dom.js";
import { follow, pause } from "./follow.js";
import { ago, fullTime, lastSegment, titleOf } from "./format.js";
import { amiss, emptyWord, groups, renewed } from "./list.js";
import { notice } from "./parts.js";

/** How many titles are asked for at a time. */
const MAX_ASKING = 2;
/** How often the list is read again, in milliseconds. */
const EVERY = 15_000;

const view = {
  body: document.getElementById("sessions-body"),
  notice: document.getElementById("sessions-notice"),
  list: document.getElementById("sessions-list"),
  foot: document.getElementById("sessions-foot"),
};

/** The list that is shown; a new one for each search. */
let current = null;
let selected = null;

/** What sessions do. */
let activity = null;

/** Says where it is kept what sessions do. */
export function tellActivity(known) {
  activity = known;
}

/** Shows anew what sessions do. */
export function activityChanged() {
  for (const session of current?.sessions ?? []) describe(current, session);
}

/** Shows the sessions that mention this text; all of them when it is empty. */
export function search(text) {
  clear();
  current = { q: text.trim(), stop: new AbortController(), sessions: [], links: new Map(), order: null, cursor: null, tag: null, notice: null, said: "ok", loading: false, more: true, asking: 0, wanted: [] };
  load(current);
}

/** Shows no list. */
export function clear() {
  current?.stop.abort();
  current = null;
  inSight.disconnect();
  atEnd.unobserve(view.foot);
  for (const place of [view.notice, view.list, view.foot]) fill(place);
}

/** Reads the newest sessions again and keeps the older ones that are shown. */
export const refresh = follow(
  async () => {
    const list = current;
    if (!list || list.loading) return true;
    if (list.tag === null) {
      await load(list);
      return list.tag !== null;
    }
    for (const session of list.sessions) describe(list, session);
    try {
      const { tag, body } = await listSessions({ q: list.q }, list.stop.signal, list.tag);
      if (list !== current || list.loading) return true;
      if (body === null) {
        renderNotice(list, list.said);
        return true;
      }
      list.tag = tag;
      const before = list.sessions;
      list.sessions = renewed(before, body);
      // The cursor of the first page is the right one unless more than that page is shown.
      if (list.sessions.length === body.sessions.length) list.cursor = body.cursor;
      list.more = list.cursor !== null;
      arrange(list);
      renderNotice(list, body.upstream);
      renderFoot(list);
      return true;
    } catch (error) {
      if (list !== current || error.name === "AbortError") return true;
      if (!(error instanceof ApiError)) throw error;
      renderNotice(list, "stale");
      return false;
    }
  },
  (failures) => Math.max(EVERY, pause(false, failures)),
);

/** Marks the session that is being read. */
export function select(id) {
  selected = id;
  for (const link of view.list.querySelectorAll("a.session")) mark(link, true);
}

function mark(link, show) {
  if (link.dataset.id === selected) {
    link.setAttribute("aria-current", "page");
    if (show) link.scrollIntoView({ block: "nearest" });
  } else {
    link.removeAttribute("aria-current");
  }
}

async function load(list) {
  if (list.loading || !list.more) return;
  list.loading = true;
  fill(view.foot, el("p", { class: "loading", role: "status" }, "Loading sessions…"));
  try {
    const { tag, body } = await listSessions({ cursor: list.cursor, q: list.q }, list.stop.signal);
    if (list !== current) return;
    const isFirst = list.tag === null;
    list.tag ??= tag;
    list.cursor = body.cursor;
    list.more = body.cursor !== null;
    const known = new Set(list.sessions.map(({ id }) => id));
    list.sessions = [...list.sessions, ...body.sessions.filter(({ id }) => !known.has(id))];
    arrange(list);
    if (isFirst) view.list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
    renderNotice(list, body.upstream);
    renderFoot(list);
  } catch (error) {
    if (list !== current || error.name === "AbortError") return;
    if (!(error instanceof ApiError)) throw error;
    const retry = el("button", { class: "button text", type: "button" }, "Try again");
    retry.addEventListener("click", () => load(list));
    fill(view.foot, el("div", { class: "failure", role: "alert" }, notice("warning", "No list", withCode(error.message)), retry));
  } finally {
    list.loading = false;
  }
}

function renderFoot(list) {
  fill(view.foot, foot(list));
  atEnd.unobserve(view.foot);
  if (list.more) atEnd.observe(view.foot);
}

function foot(list) {
  if (list.more) return el("button", { class: "older", type: "button", onclick: () => load(list) }, "Load more sessions");
  const text = emptyWord(list.q, list.said);
  if (list.sessions.length > 0 || text === "") return null;
  return el("div", { class: "empty" }, icon(list.q ? "search" : "list"), el("p", {}, text));
}

/** Says what is amiss: with OpenCode, or with this list, which is `stale` then. */
function renderNotice(list, word = "ok") {
  if (word !== "stale") list.said = word;
  const [title, text] = amiss(word, list.sessions);
  const print = word === "ok" ? word : JSON.stringify([word, text]);
  if (print === list.notice) return;
  list.notice = print;
  if (word === "ok") {
    fill(view.notice);
    return;
  }
  // A login that was refused once is refused until turnkeep or OpenCode is started anew.
  const retry = word === "login_refused" ? null : el("button", { class: "button text", type: "button" }, "Try again");
  retry?.addEventListener("click", () => search(list.q));
  fill(view.notice, notice("warning", title, withCode(text)), retry);
}

/** Shows the sessions in their groups. Lines that stay are the same elements as before. */
function arrange(list) {
  const grouped = groups(list.sessions);
  for (const session of list.sessions) describe(list, session);
  const order = JSON.stringify(grouped.map(({ heading, sessions }) => [heading, sessions.map(({ id }) => id)]));
  if (order === list.order) return;
  list.order = order;
  const [focused, place] = [document.activeElement, view.body.scrollTop];
  const line = ({ id }) => el("li", {}, list.links.get(id).link);
  fill(
    view.list,
    grouped.flatMap(({ heading, sessions }) => [el("h2", {}, heading), el("ul", {}, sessions.map(line))]),
  );
  view.body.scrollTop = place;
  if (focused !== document.activeElement && view.list.contains(focused)) focused.focus({ preventScroll: true });
}

/** Makes the line of a session, or brings it up to date. */
function describe(list, session) {
  let line = list.links.get(session.id);
  if (!line) {
    const link = el("a", { class: "session", href: `#/session/${encodeURIComponent(session.id)}` });
    link.dataset.id = session.id;
    line = { link, print: null };
    list.links.set(session.id, line);
    mark(link, false);
    if (!session.title && session.state === "ok") inSight.observe(link);
  }
  const when = ago(session.updatedAt);
  const state = activity.of(session.id);
  const print = JSON.stringify([session, when, state]);
  if (print === line.print) return;
  line.print = print;
  const folder = lastSegment(session.cwd);
  const title = titleOf(session);
  fill(
    line.link,
    el("span", { class: title ? "title" : "title id", title: title ? null : session.id }, title || session.id),
    el(
      "span",
      { class: "meta" },
      when ? el("time", { title: fullTime(session.updatedAt) }, when) : null,
      folder ? el("span", { class: "folder", title: session.cwd }, folder) : null,
      session.parentID ? el("span", { title: `Continues ${session.parentID}` }, "branch") : null,
      session.blank ? el("span", {}, "empty") : null,
      session.state === "ok" ? null : el("span", { class: `badge ${session.state}`, title: session.reason ?? null }, session.state),
      isActive(state) ? el("span", { class: `doing ${state}` }, stateWord(state)) : null,
    ),
  );
}

const atEnd = new IntersectionObserver(
  (entries) => {
    if (current && entries.some((entry) => entry.isIntersecting)) load(current);
  },
  { root: view.body, rootMargin: "0px 0px 320px 0px" },
);

// A title may cost the host a whole log, so it is asked for only when its line is looked at.
const inSight = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      inSight.unobserve(target);
      current?.wanted.push(target);
    }
    if (current) askForTitles(current);
  },
  { root: view.body },
);

async function askForTitles(list) {
  while (list === current && list.asking < MAX_ASKING && list.wanted.length > 0) {
    const link = list.wanted.shift();
    list.asking += 1;
    getSession(link.dataset.id, list.stop.signal)
      .then((session) => {
        if (list !== current) return;
        list.sessions = list.sessions.map((known) => (known.id === session.id ? { ...session, updatedAt: known.updatedAt } : known));
        describe(list, list.sessions.find(({ id }) => id === session.id) ?? session);
      })
      .catch((error) => {
        if (!(error instanceof ApiError) && error.name !== "AbortError") throw error;
      })
      .finally(() => {
        list.asking -= 1;
        askForTitles(list);
      });
  }
}

/** Moves from session to session with the arrow keys. */
view.list.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
  const links = [...view.list.querySelectorAll("a.session")];
  const next = links[links.indexOf(document.activeElement) + step];
  if (next) {
    event.preventDefault();
    next.focus();
  }
});
