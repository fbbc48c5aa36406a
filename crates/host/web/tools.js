// Tool calls, one line each. What a page leaves out of them is looked up when they are opened.

import { el, icon } from "./dom.js";
import { bytes, duration, lastSegment, shortPath } from "./format.js";
import { longText, opening } from "./opened.js";

/** Longer values of a call's input get a box of their own. */
const MAX_INLINE = 300;

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

/** What the call was about, in one line, and whether that is a path. */
export function headline(part, cwd) {
  const state = part.state ?? {};
  const input = state.input ?? {};
  const [, , keys] = kind(part.tool ?? "");
  for (const key of [...keys, ...ANY_INPUT]) {
    const value = input[key];
    if (typeof value !== "string" || value === "") continue;
    return PATHS.has(key) ? { text: shortPath(value, cwd), isPath: true } : { text: value, isPath: false };
  }
  const title = typeof state.title === "string" ? state.title : "";
  const text = shortPath(title, cwd);
  // A title says in its own words what a call is about; for files, that is their path.
  return { text, isPath: text !== title || (keys.includes("filePath") && title.includes("/") && !/\s/.test(title)) };
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

/** What a line is about. The end of a path says most, so it is its beginning that gives way. */
function what({ text, isPath }) {
  return isPath ? el("span", { class: "what path" }, el("bdi", { dir: "ltr" }, text)) : el("span", { class: "what" }, text);
}

/** A tool call as a line that opens. */
export function toolRow(part, cwd, lookup) {
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
    what(headline(part, cwd)),
    counts(metadata.additions, metadata.deletions),
    status === "completed" || status === "" ? null : el("span", { class: "state" }, STATES[status] ?? status),
    el("span", { class: "took" }, took),
    icon("chevron"),
  );
  return opening(summary, part, (whole) => callDetails(whole, cwd), lookup);
}

/** What a call was given and what came of it. */
export function callDetails(part, cwd) {
  const state = part.state ?? {};
  const metadata = state.metadata ?? {};
  const rows = [];
  const row = (key, ...value) => rows.push(el("dt", {}, key), el("dd", {}, ...value.flat()));
  const input = state.input ?? {};
  const title = typeof state.title === "string" ? state.title : "";
  const said = [headline(part, cwd).text, ...Object.values(input)];
  if (title !== "" && !said.includes(title)) row("title", title);
  if (typeof input === "object") {
    for (const [key, value] of Object.entries(input)) row(key, valueOf(PATHS.has(key) ? shortPath(value, cwd) || value : value, key));
  } else row("input", valueOf(input, "input"));
  for (const file of Array.isArray(metadata.files) ? metadata.files : []) {
    row("file", el("code", {}, shortPath(file?.relativePath ?? file?.filePath ?? file?.path, cwd)), " ", counts(file?.additions, file?.deletions) ?? "");
  }
  if (typeof metadata.diff === "string" && metadata.diff !== "") row("change", longText(metadata.diff, "Change"));
  const child = metadata.sessionId ?? part.metadata?.sessionId;
  if (typeof child === "string") row("session", el("a", { href: `#/session/${encodeURIComponent(child)}` }, child));
  if (typeof state.error === "string" && state.error !== "") row("error", el("div", { class: "went-wrong" }, longText(state.error, "Error")));
  if (typeof state.output === "string") row("output", state.output === "" ? el("span", { class: "muted" }, "nothing") : longText(state.output, "Output"));
  const attached = Array.isArray(state.attachments) ? state.attachments.filter((file) => file !== null && typeof file === "object") : [];
  if (attached.length > 0) row("files", attached.map((file) => fileElement(file)));
  return rows.length > 0 ? el("dl", {}, rows) : el("p", { class: "muted" }, "Nothing more is known of this call.");
}

function valueOf(value, key) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  return text.length > MAX_INLINE || text.includes("\n") ? longText(text, key) : el("code", {}, text);
}

/** What can be shown of a picture: a form that browsers draw and that carries no script. */
const PICTURE = /^data:image\/(?:png|jpe?g|webp|gif)[;,]/i;

/** A file: a picture that can be looked at as a line that opens, anything else as a chip. */
export function fileElement(part, lookup) {
  const isPicture = typeof part.mime === "string" && part.mime.startsWith("image/");
  const isHere = PICTURE.test(part.url ?? "");
  if (!isPicture || !(isHere || (part.slim === true && lookup?.messages))) return fileChip(part);
  return opening(el("summary", {}, fileChip(part)), part, (whole) => picture(whole, nameOf(part)), lookup);
}

function picture(part, name) {
  if (!PICTURE.test(part.url ?? "")) return el("p", { class: "muted" }, "The image is not stored in the session.");
  return el("img", { class: "picture", src: part.url, alt: name, decoding: "async" });
}

function nameOf(part) {
  return part.filename || lastSegment(part.source?.path) || (typeof part.url === "string" && !part.url.startsWith("data:") ? lastSegment(part.url) : "") || "file";
}

/** A file as a chip: its name, kind and size. */
export function fileChip(part) {
  const name = nameOf(part);
  const size = part.byteSize ?? part.size;
  const facts = [part.mime, part.width && part.height ? `${part.width} × ${part.height}` : "", bytes(size)].filter(Boolean);
  const isImage = typeof part.mime === "string" && part.mime.startsWith("image/");
  return el("span", { class: "file" }, icon(isImage ? "image" : "file"), el("span", { class: "file-name" }, name), el("span", { class: "file-facts" }, facts.join(" · ")));
}
