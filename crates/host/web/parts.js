// The parts of a record as elements.

import { el, icon } from "./dom.js";
import { duration, plural, shortPath } from "./format.js";
import { render } from "./markdown.js";
import { opening } from "./opened.js";
import { counts, fileElement, toolRow } from "./tools.js";

/** How many lines of a group are shown before the rest is folded. */
const SHOWN_ROWS = 7;
const STATUS = { added: "A", modified: "M", deleted: "D" };

/**
 * The parts of one turn's answers. Calls and thoughts that follow each other make one group, and so
 * do texts that were added for the model. `listed` says that the turn's changed files are listed
 * elsewhere, `isLive` that the turn goes on, `messages` is where whole messages come from.
 */
export function answerParts(records, { cwd, listed = false, isLive = false, messages = null } = {}) {
  const shown = [];
  let [rows, added] = [[], []];
  const endGroups = (isLast = false) => {
    if (rows.length > 0) shown.push(rowGroup(rows, isLive && isLast));
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
      const line = part.type === "patch" && listed ? null : row(part, cwd, { record, messages });
      if (line) {
        if (added.length > 0) endGroups();
        rows.push(line);
      } else if (part.type !== "text") show(blockOf(part, { record, messages }));
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
  endGroups(true);
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

function row(part, cwd, lookup) {
  if (part.type === "tool") return toolRow(part, cwd, lookup);
  if (part.type === "reasoning") return thought(part, lookup);
  if (part.type === "patch" && Array.isArray(part.files) && part.files.length > 0) {
    const files = part.files.map((file) => shortPath(file, cwd)).join(", ");
    return el("div", { class: "row quiet" }, icon("pencil"), el("span", { class: "name" }, "changed"), el("span", { class: "what" }, files));
  }
  return null;
}

function thought(part, lookup) {
  const took = duration((part.time?.end ?? Number.NaN) - (part.time?.start ?? Number.NaN));
  const line = [icon("thought"), el("span", { class: "name" }, "thinking"), el("span", { class: "what" }), el("span", { class: "took" }, took)];
  if (part.slim !== true && textOf(part) === "") return el("div", { class: "row quiet" }, line);
  const shown = (whole) =>
    textOf(whole) === "" ? el("p", { class: "muted" }, "The model did not say what it thought.") : el("div", { class: "prose" }, render(whole.text));
  return opening(el("summary", { class: "row quiet" }, line, icon("chevron")), part, shown, lookup);
}

/** Lines in a box. Of many, only the first are shown; while the turn goes on, only the last. */
function rowGroup(rows, isLive) {
  const hiddenCount = rows.length > SHOWN_ROWS + 1 ? rows.length - SHOWN_ROWS : 0;
  const hidden = isLive ? rows.splice(0, hiddenCount) : rows.splice(rows.length - hiddenCount);
  const group = el("div", { class: "rows" }, rows);
  if (hidden.length === 0) return group;
  const more = el("button", { class: "unfold", type: "button" }, `Show ${plural(hidden.length, isLive ? "earlier step" : "more step")}`);
  group.unfold = (hasFocus = false) => {
    more.replaceWith(...hidden);
    group.isUnfolded = true;
    group.unfold = null;
    if (hasFocus) (hidden[0].querySelector("summary") ?? hidden[0]).focus();
  };
  more.addEventListener("click", () => group.unfold?.(true));
  if (isLive) group.prepend(more);
  else group.append(more);
  return group;
}

function blockOf(part, lookup) {
  switch (part.type) {
    case "file":
      return fileElement(part, lookup);
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

/** What a person wrote, and what came with it. `messages` is where whole messages come from. */
export function promptParts(record, messages = null) {
  const parts = partsOf(record);
  const texts = parts.filter((part) => part.type === "text" && textOf(part) !== "");
  const written = texts.filter((part) => !part.synthetic);
  const added = texts.filter((part) => part.synthetic);
  const attached = parts.filter((part) => part.type === "file" || part.type === "agent");
  const problem = problemOf(record.info?.error);
  const shown = [
    written.length > 0 ? el("div", { class: "prose" }, written.flatMap((part) => render(part.text, { breaks: true }))) : null,
    attached.length > 0 ? el("div", { class: "files" }, attached.map((part) => blockOf(part, { record, messages }))) : null,
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
  return el("div", { class: `notice ${picture}` }, icon(picture), el("div", {}, el("strong", {}, title), text ? el("p", {}, ...[text].flat()) : null));
}
