// Tool calls, one line each, with what a slim page still knows of them.

import { el, icon } from "./dom.js";
import { duration, shortPath } from "./format.js";

// What a tool is about, by the picture and by the input that says it best.
const KINDS = [
  [/todo|plan/i, "list", ["description"]],
  [/bash|shell|exec|terminal|command/i, "terminal", ["command", "description"]],
  [/write|edit|patch|create/i, "pencil", ["filePath", "file_path", "path"]],
  [/read|view|cat/i, "file", ["filePath", "file_path", "path"]],
  [/grep|glob|search|find|list|ls/i, "search", ["pattern", "query", "glob", "path"]],
  [/fetch|web|http/i, "globe", ["query", "target", "path"]],
  [/task|agent/i, "branch", ["description", "subagent_type", "agent"]],
];
const ANY_INPUT = ["description", "command", "filePath", "file_path", "path", "pattern", "query", "target", "name"];
const PATHS = new Set(["filePath", "file_path", "path"]);
const STATES = { pending: "not started", running: "not finished", error: "failed", completed: "done" };

function kind(tool) {
  return KINDS.find(([pattern]) => pattern.test(tool)) ?? [null, "spark", ANY_INPUT];
}

/** What the call was about, in one line. */
export function headline(part, cwd) {
  const state = part.state ?? {};
  const input = state.input ?? {};
  const [, , keys] = kind(part.tool ?? "");
  for (const key of [...keys, ...ANY_INPUT]) {
    const value = input[key];
    if (typeof value === "string" && value !== "") return PATHS.has(key) ? shortPath(value, cwd) : value;
  }
  return typeof state.title === "string" ? state.title : "";
}

/** The numbers of lines added and taken away. */
export function counts(additions, deletions) {
  const known = (number) => typeof number === "number" && number > 0;
  if (!known(additions) && !known(deletions)) return null;
  return el(
    "span",
    { class: "counts" },
    known(additions) ? el("span", { class: "added" }, `+${additions}`) : null,
    known(deletions) ? el("span", { class: "removed" }, `−${deletions}`) : null,
  );
}

/** A tool call as a line that opens. */
export function toolRow(part, cwd) {
  const state = part.state ?? {};
  const name = typeof part.tool === "string" ? part.tool : "tool";
  const status = typeof state.status === "string" ? state.status : "";
  const took = duration((state.time?.end ?? Number.NaN) - (state.time?.start ?? Number.NaN));
  const metadata = state.metadata ?? {};
  const summary = el(
    "summary",
    { class: `row ${status}` },
    icon(kind(name)[1]),
    el("span", { class: "name" }, name),
    el("span", { class: "what" }, headline(part, cwd)),
    counts(metadata.additions, metadata.deletions),
    status === "completed" || status === "" ? null : el("span", { class: "state" }, STATES[status] ?? status),
    el("span", { class: "took" }, took),
    icon("chevron"),
  );
  return el("details", { class: "tool" }, summary, details(part, cwd));
}

function details(part, cwd) {
  const state = part.state ?? {};
  const rows = [];
  const row = (key, ...value) => rows.push(el("dt", {}, key), el("dd", {}, ...value));
  const title = typeof state.title === "string" ? state.title : "";
  if (title !== "" && title !== headline(part, cwd)) row("title", title);
  for (const [key, value] of Object.entries(state.input ?? {})) {
    row(key, el("code", {}, typeof value === "string" ? value : JSON.stringify(value)));
  }
  for (const file of state.metadata?.files ?? []) {
    row("file", el("code", {}, shortPath(file.relativePath ?? file.filePath ?? file.path, cwd)), " ", counts(file.additions, file.deletions));
  }
  const child = state.metadata?.sessionId ?? part.metadata?.sessionId;
  if (typeof child === "string") row("session", el("a", { href: `#/session/${encodeURIComponent(child)}` }, child));
  if (typeof state.error === "string") row("error", el("pre", {}, state.error));
  if (typeof state.output === "string") row("output", el("pre", { tabindex: "0" }, state.output));
  const body = rows.length > 0 ? el("dl", {}, rows) : el("p", { class: "muted" }, "Nothing more is known of this call.");
  const left = state.output === undefined && state.status === "completed";
  return el("div", { class: "more" }, body, left ? el("p", { class: "muted" }, "The output is not part of a turn page.") : null);
}
