// The list of sessions.

import { ApiError, getSession, listSessions } from "./api.js";
import { el, fill, icon } from "./dom.js";
import { ago, day, fullTime, lastSegment, titleOf } from "./format.js";
import { notice } from "./parts.js";

/** How many titles are asked for at a time. */
const MAX_ASKING = 2;

const view = {
  body: document.getElementById("sessions-body"),
  notice: document.getElementById("sessions-notice"),
  list: document.getElementById("sessions-list"),
  foot: document.getElementById("sessions-foot"),
};

/** The list that is shown; a new one for each search. */
let current = null;
let selected = null;

/** Shows the sessions that mention this text; all of them when it is empty. */
export function search(text) {
  current?.stop.abort();
  inSight.disconnect();
  current = { q: text.trim(), stop: new AbortController(), cursor: null, day: null, group: null, empty: true, loading: false, more: true, asking: 0, wanted: [] };
  fill(view.notice);
  fill(view.list);
  atEnd.unobserve(view.foot);
  load(current);
}

/** Marks the session that is being read. */
export function select(id) {
  selected = id;
  for (const link of view.list.querySelectorAll("a.session")) mark(link);
}

function mark(link) {
  if (link.dataset.id === selected) {
    link.setAttribute("aria-current", "page");
    link.scrollIntoView({ block: "nearest" });
  } else {
    link.removeAttribute("aria-current");
  }
}

async function load(list) {
  if (list.loading || !list.more) return;
  list.loading = true;
  fill(view.foot, el("p", { class: "loading", role: "status" }, "Loading sessions…"));
  try {
    const page = await listSessions({ cursor: list.cursor, q: list.q }, list.stop.signal);
    if (list !== current) return;
    list.cursor = page.cursor;
    list.more = page.cursor !== null;
    renderNotice(page.upstream);
    for (const session of page.sessions) add(list, session);
    fill(view.foot, foot(list));
    if (list.more) {
      atEnd.unobserve(view.foot);
      atEnd.observe(view.foot);
    }
  } catch (error) {
    if (list !== current || error.name === "AbortError") return;
    if (!(error instanceof ApiError)) throw error;
    const retry = el("button", { class: "button text", type: "button" }, "Try again");
    retry.addEventListener("click", () => load(list));
    fill(view.foot, el("div", { class: "failure", role: "alert" }, notice("warning", "No list", error.message), retry));
  } finally {
    list.loading = false;
  }
}

function foot(list) {
  if (list.more) return el("button", { class: "older", type: "button", onclick: () => load(list) }, "Load more sessions");
  if (!list.empty) return null;
  const text = list.q ? "No session mentions that." : "There are no sessions yet.";
  return el("div", { class: "empty" }, icon(list.q ? "search" : "list"), el("p", {}, text));
}

function renderNotice(upstream) {
  if (upstream === undefined || upstream === "ok") {
    fill(view.notice);
    return;
  }
  const retry = el("button", { class: "button text", type: "button" }, "Try again");
  retry.addEventListener("click", () => search(current.q));
  const why = upstream === "unavailable" ? "OpenCode does not answer" : "OpenCode's list cannot be read";
  fill(view.notice, notice("warning", why, "Only stored sessions are listed."), retry);
}

function add(list, session) {
  const heading = day(session.updatedAt);
  if (list.day !== heading) {
    list.day = heading;
    list.group = el("ul");
    view.list.append(el("h2", {}, heading), list.group);
  }
  list.empty = false;
  const link = el("a", { class: "session", href: `#/session/${encodeURIComponent(session.id)}` });
  link.dataset.id = session.id;
  describe(link, session);
  list.group.append(el("li", {}, link));
  mark(link);
  if (!session.title && session.state === "ok") inSight.observe(link);
}

function describe(link, session) {
  const folder = lastSegment(session.cwd);
  const title = titleOf(session);
  fill(
    link,
    el("span", { class: title ? "title" : "title id", title: title ? null : session.id }, title || session.id),
    el(
      "span",
      { class: "meta" },
      el("time", { title: fullTime(session.updatedAt) }, ago(session.updatedAt)),
      folder ? el("span", { class: "folder", title: session.cwd }, folder) : null,
      session.parentID ? el("span", { title: `Continues ${session.parentID}` }, "branch") : null,
      session.blank ? el("span", {}, "empty") : null,
      session.state === "ok" ? null : el("span", { class: `badge ${session.state}`, title: session.reason ?? null }, session.state),
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
      current.wanted.push(target);
    }
    askForTitles(current);
  },
  { root: view.body },
);

async function askForTitles(list) {
  while (list === current && list.asking < MAX_ASKING && list.wanted.length > 0) {
    const link = list.wanted.shift();
    list.asking += 1;
    getSession(link.dataset.id, list.stop.signal)
      .then((session) => describe(link, session))
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
