// What the list of sessions is made of.

import { day } from "./format.js";

/** The sessions under their headings: by day, and those without a time last. */
export function groups(sessions, now = Date.now()) {
  const dated = sessions.filter(({ updatedAt }) => typeof updatedAt === "number").sort((a, b) => b.updatedAt - a.updatedAt);
  const undated = sessions.filter(({ updatedAt }) => typeof updatedAt !== "number");
  const found = [];
  for (const session of dated) {
    const heading = day(session.updatedAt, now);
    if (found.at(-1)?.heading === heading) found.at(-1).sessions.push(session);
    else found.push({ heading, sessions: [session] });
  }
  if (undated.length > 0) found.push({ heading: "Without a date", sessions: undated });
  return found;
}

/**
 * The sessions that are shown, now that the first page of the list is this one. What stands on it
 * is as it says; what stood above its end and is not on it any more is gone; the rest stays, and so
 * do those of an OpenCode that did not answer.
 */
export function renewed(shown, page) {
  const onPage = new Set(page.sessions.map(({ id }) => id));
  const end = Math.min(...page.sessions.map(timeOf).filter(Number.isFinite));
  const isBelow = (session) => page.cursor !== null && timeOf(session) <= end;
  const isAway = ({ source }) => source === "upstream" && page.upstream !== undefined && page.upstream !== "ok";
  const stays = (session) => !onPage.has(session.id) && (isBelow(session) || isAway(session));
  const all = [...page.sessions.map((session) => enriched(session, shown)), ...shown.filter(stays)];
  return all.sort((a, b) => (timeOf(a) === timeOf(b) ? 0 : timeOf(b) - timeOf(a)));
}

const NOTICES = {
  unavailable: ["OpenCode does not answer", null],
  login_refused: ["OpenCode refused the login", "Start turnkeep with `OPENCODE_SERVER_PASSWORD` set."],
  stale: ["Not up to date", "turnkeep does not answer. Is it still running?"],
  failed: ["OpenCode's list cannot be read", null],
};

/** What is amiss with a list that shows these sessions, as a title and a sentence. */
export function amiss(word, sessions) {
  const [title, sentence] = NOTICES[word] ?? NOTICES.failed;
  if (sentence !== null) return [title, sentence];
  const isKept = sessions.some(({ source }) => source === "upstream");
  return [title, isKept ? "Its sessions are shown as they were last." : "Only stored sessions are listed."];
}

/** What to say when no session is shown; nothing when nobody knows whether there are any. */
export function emptyWord(q, upstream) {
  if (upstream === "ok") return q ? "No session mentions that." : "There are no sessions yet.";
  return q ? "No stored session mentions that." : "";
}

/** Sessions without a time come last. */
function timeOf({ updatedAt }) {
  return typeof updatedAt === "number" ? updatedAt : Number.NEGATIVE_INFINITY;
}

/** What was found out by asking for a session itself is not forgotten where the list leaves it out. */
function enriched(session, shown) {
  const known = shown.find(({ id }) => id === session.id);
  if (!known) return session;
  return { ...session, title: session.title ?? known.title, lastPromptAt: session.lastPromptAt ?? known.lastPromptAt, blank: session.blank || (known.blank && session.revision === known.revision) };
}
