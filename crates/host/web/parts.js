// The parts of a record as elements.

import { el, icon } from "./dom.js";
import { bytes, duration, lastSegment, plural, shortPath } from "./format.js";
import { render } from "./markdown.js";
import { counts, toolRow } from "./tools.js";

/** How many lines of a group are shown before the rest is folded. */
const SHOWN_ROWS = 7;
const STATUS = { added: "A", modified: "M", deleted: "D" };

/**
 * The parts of one turn's answers. Calls and thoughts that follow each other make one group, and so
 * do texts that were added for the model. `listed` says that the turn's changed files are listed
 * elsewhere.
 */
export function answerParts(records, cwd, listed) {
  const shown = [];
  let [rows, added] = [[], []];
  const endGroups = () => {
    if (rows.length > 0) shown.push(rowGroup(rows));
    if (added.length > 0) shown.push(addedTexts(added));
    [rows, added] = [[], []];
  };
  const show = (block) => {
    if (!block) return;
    endGroups();
    shown.push(block);
  };
  for (const record of records) {
    const summary = [];
    for (const part of partsOf(record)) {
      const line = part.type === "patch" && listed ? null : row(part, cwd);
      if (line) {
        if (added.length > 0) endGroups();
        rows.push(line);
      } else if (part.type !== "text") show(blockOf(part));
      else if (textOf(part) === "") continue;
      else if (record.info?.summary === true) summary.push(textOf(part));
      else if (part.synthetic || record.info?.role === "user") {
        if (rows.length > 0) endGroups();
        added.push(textOf(part));
      } else show(el("div", { class: "prose" }, render(part.text)));
    }
    if (summary.length > 0) show(folded("Summary of the conversation so far", render(summary.join("\n\n"))));
    show(problemOf(record.info?.error));
  }
  endGroups();
  return shown;
}

function partsOf(record) {
  const parts = Array.isArray(record.parts) ? record.parts : [];
  return parts.filter((part) => part !== null && typeof part === "object");
}

/** The text of a part; empty when there is nothing to be seen in it. */
function textOf(part) {
  return typeof part.text === "string" && part.text.trim() !== "" ? part.text : "";
}

function addedTexts(texts) {
  const title = texts.length === 1 ? "Added for the model" : `Added for the model (${plural(texts.length, "text")})`;
  return folded(title, texts.map((text) => el("pre", { class: "plain" }, text)));
}

function row(part, cwd) {
  if (part.type === "tool") return toolRow(part, cwd);
  if (part.type === "reasoning") return thought(part);
  if (part.type === "patch" && Array.isArray(part.files) && part.files.length > 0) {
    const files = part.files.map((file) => shortPath(file, cwd)).join(", ");
    return el("div", { class: "row quiet" }, icon("pencil"), el("span", { class: "name" }, "changed"), el("span", { class: "what" }, files));
  }
  return null;
}

function thought(part) {
  const took = duration((part.time?.end ?? Number.NaN) - (part.time?.start ?? Number.NaN));
  const line = [icon("thought"), el("span", { class: "name" }, "thinking"), el("span", { class: "what" }), el("span", { class: "took" }, took)];
  if (typeof part.text !== "string" || part.text.trim() === "") return el("div", { class: "row quiet" }, line);
  return el("details", { class: "tool" }, el("summary", { class: "row quiet" }, line, icon("chevron")), el("div", { class: "more prose" }, render(part.text)));
}

function rowGroup(rows) {
  const hidden = rows.length > SHOWN_ROWS + 1 ? rows.splice(SHOWN_ROWS) : [];
  const group = el("div", { class: "rows" }, rows);
  if (hidden.length > 0) {
    const more = el("button", { class: "unfold", type: "button" }, `Show ${plural(hidden.length, "more step")}`);
    more.addEventListener("click", () => {
      more.replaceWith(...hidden);
      (hidden[0].querySelector("summary") ?? hidden[0]).focus();
    });
    group.append(more);
  }
  return group;
}

function blockOf(part) {
  switch (part.type) {
    case "file":
      return fileChip(part);
    case "compaction":
      return el("p", { class: "divider" }, el("span", {}, "Conversation compacted"));
    case "subtask":
      return el("p", { class: "note" }, icon("branch"), `Handed to ${part.agent ?? "a subagent"}: ${part.description ?? part.prompt ?? ""}`);
    case "agent":
      return el("p", { class: "note" }, icon("branch"), `@${part.name ?? "agent"}`);
    case "retry":
      return notice("warning", "Tried again", part.error?.data?.message ?? part.error?.message ?? "");
    case "step-start":
    case "step-finish":
    case "snapshot":
    case "patch":
      return null;
    default:
      return el("p", { class: "note" }, `A part of a kind that this reader does not know: ${String(part.type)}`);
  }
}

function folded(title, content) {
  return el("details", { class: "folded" }, el("summary", {}, icon("chevron"), title), el("div", { class: "prose" }, content));
}

/** A file as a chip: its name, kind and size. */
export function fileChip(part) {
  const name = part.filename || lastSegment(part.source?.path) || (typeof part.url === "string" && !part.url.startsWith("data:") ? lastSegment(part.url) : "") || "file";
  const size = part.byteSize ?? part.size;
  const facts = [part.mime, part.width && part.height ? `${part.width} × ${part.height}` : "", bytes(size)].filter(Boolean);
  const isImage = typeof part.mime === "string" && part.mime.startsWith("image/");
  return el("span", { class: "file" }, icon(isImage ? "image" : "file"), el("span", { class: "file-name" }, name), el("span", { class: "file-facts" }, facts.join(" · ")));
}

/** What a person wrote, and what came with it. */
export function promptParts(record) {
  const parts = partsOf(record);
  const texts = parts.filter((part) => part.type === "text" && textOf(part) !== "");
  const written = texts.filter((part) => !part.synthetic);
  const added = texts.filter((part) => part.synthetic);
  const attached = parts.filter((part) => part.type === "file" || part.type === "agent");
  const problem = problemOf(record.info?.error);
  const shown = [
    written.length > 0 ? el("div", { class: "prose" }, written.flatMap((part) => render(part.text, { breaks: true }))) : null,
    attached.length > 0 ? el("div", { class: "files" }, attached.map(blockOf)) : null,
    added.length > 0 ? addedTexts(added.map(textOf)) : null,
    problem,
  ].filter(Boolean);
  return shown.length > 0 ? shown : [el("p", { class: "muted" }, "An empty message.")];
}

/** The files that a turn changed. */
export function diffList(diffs, cwd) {
  const files = diffs.filter((diff) => diff !== null && typeof diff === "object");
  if (files.length === 0) return null;
  const total = (key) => files.reduce((sum, diff) => sum + (typeof diff[key] === "number" ? diff[key] : 0), 0);
  return el(
    "details",
    { class: "diffs" },
    el("summary", {}, icon("chevron"), plural(files.length, "file"), " changed", counts(total("additions"), total("deletions"))),
    el(
      "ul",
      {},
      files.map((diff) =>
        el(
          "li",
          {},
          el("span", { class: `status ${STATUS[diff.status] ? diff.status : ""}`, title: diff.status ?? "changed" }, STATUS[diff.status] ?? "•"),
          el("code", {}, shortPath(diff.file ?? "", cwd) || "a file"),
          counts(diff.additions, diff.deletions),
        ),
      ),
    ),
  );
}

/** What went wrong with an answer. */
export function problemOf(error) {
  if (error === null || typeof error !== "object") return null;
  const message = error.data?.message ?? error.message ?? "";
  if (error.name === "MessageAbortedError") return notice("stop", "Interrupted", "");
  if (error.name === "TurnkeepUnreadable") {
    return notice("warning", "This message cannot be read", "OpenCode keeps it, but cannot send it.");
  }
  const name = typeof error.name === "string" ? error.name.replace(/Error$/, "") : "";
  const kind = ["", "API", "Unknown"].includes(name) ? "" : `: ${name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase()}`;
  return notice("warning", `Failed${kind}`, typeof message === "string" ? message : "");
}

/** A line that stands out. */
export function notice(picture, title, text) {
  return el("div", { class: `notice ${picture}` }, icon(picture), el("div", {}, el("strong", {}, title), text ? el("p", {}, text) : null));
}
