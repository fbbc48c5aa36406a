// The Markdown that agents and people write, read into a tree and shown as elements.
//
// `parse` knows headings, paragraphs, lists, quotes, fenced code, tables and rules; `inline` knows
// code, emphasis, links and bare addresses. Both are linear in the text. Anything else stays text:
// there is no HTML here.

import { el, icon } from "./dom.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}>\s?(.*)$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+|$)(.*)$/;
const TASK = /^\[([ xX])\]\s+(.*)$/s;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const MAX_DEPTH = 8;

/** Reads text into blocks. */
export function parse(text, depth = 0) {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const blocks = [];
  let paragraph = [];
  const flush = () => {
    if (paragraph.length > 0) blocks.push({ type: "paragraph", text: paragraph.join("\n") });
    paragraph = [];
  };
  const push = (block) => {
    flush();
    blocks.push(block);
  };
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    if (line.trim() === "") {
      flush();
      at += 1;
      continue;
    }
    const fence = FENCE.exec(line);
    if (fence) {
      const end = closing(lines, at + 1, fence[1]);
      push({ type: "code", language: fence[2], text: lines.slice(at + 1, end).join("\n") });
      at = end + 1;
      continue;
    }
    const heading = HEADING.exec(line);
    if (heading) {
      push({ type: "heading", level: heading[1].length, text: heading[2] });
      at += 1;
      continue;
    }
    if (RULE.test(line)) {
      push({ type: "rule" });
      at += 1;
      continue;
    }
    if (QUOTE.test(line) && depth < MAX_DEPTH) {
      const quoted = [];
      while (at < lines.length && QUOTE.test(lines[at])) quoted.push(QUOTE.exec(lines[at++])[1]);
      push({ type: "quote", blocks: parse(quoted.join("\n"), depth + 1) });
      continue;
    }
    if (line.includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && TABLE_RULE.test(lines[at + 1])) {
      const head = cells(line);
      const rows = [];
      at += 2;
      while (at < lines.length && lines[at].includes("|") && lines[at].trim() !== "") rows.push(cells(lines[at++]));
      push({ type: "table", head, rows });
      continue;
    }
    const item = ITEM.exec(line);
    const starts = item && (paragraph.length === 0 || !/^\d/.test(item[2]) || /^1[.)]/.test(item[2]));
    if (starts && depth < MAX_DEPTH) {
      const list = readList(lines, at, depth);
      push(list.block);
      at = list.next;
      continue;
    }
    paragraph.push(line.trimStart());
    at += 1;
  }
  flush();
  return blocks;
}

/** The line that ends a fence, or the end of the text: an answer that is still being written. */
function closing(lines, from, fence) {
  for (let at = from; at < lines.length; at += 1) {
    const line = lines[at].trim();
    if (line.length >= fence.length && line === fence[0].repeat(line.length)) return at;
  }
  return lines.length;
}

function cells(line) {
  const trimmed = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return trimmed.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function readList(lines, from, depth) {
  const [, indent, marker] = ITEM.exec(lines[from]);
  const ordered = /^\d/.test(marker);
  const items = [];
  let at = from;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (!item || item[1].length > indent.length + 1 || item[1].length < indent.length) break;
    if (/^\d/.test(item[2]) !== ordered || RULE.test(lines[at])) break;
    const inset = item[1].length + item[2].length + Math.min(Math.max(item[3].length, 1), 4);
    const content = [item[4]];
    at += 1;
    while (at < lines.length) {
      const line = lines[at];
      const blank = line.trim() === "";
      const inside = line.length - line.trimStart().length;
      const followed = blank && at + 1 < lines.length && /^\s/.test(lines[at + 1]) && lines[at + 1].trim() !== "";
      if (blank ? !followed : inside < Math.min(inset, indent.length + 2) && (ITEM.test(line) || content.at(-1) === "" || startsBlock(line))) break;
      content.push(blank ? "" : line.slice(Math.min(inset, inside)));
      at += 1;
    }
    items.push(parse(content.join("\n"), depth + 1));
    let next = at;
    while (next < lines.length && lines[next].trim() === "") next += 1;
    const following = next < lines.length ? ITEM.exec(lines[next]) : null;
    if (following && following[1].length === indent.length && /^\d/.test(following[2]) === ordered) at = next;
  }
  return { block: { type: "list", ordered, start: ordered ? Number.parseInt(marker, 10) : 1, items }, next: at };
}

function startsBlock(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line);
}

// Every run is bounded, so that no text makes the search go over it again and again.
const INLINE = new RegExp(
  [
    /(?<!`)(?<ticks>`{1,8})(?!`)(?<code>[^]{1,2000}?)(?<!`)\k<ticks>(?!`)/.source,
    /\\(?<escaped>[\\`*_{}[\]()#+\-.!|<>~])/.source,
    /!?\[(?<label>[^\][\n]{0,500})\]\((?<target>[^()\s]{1,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,2000})?)(?:\s+"[^"\n]{0,500}")?\)/.source,
    /<(?<auto>https?:\/\/[^\s<>]{1,2000})>/.source,
    /(?<bare>\bhttps?:\/\/[^\s<>"'`]{1,2000})/.source,
    /\*\*(?<strong>[^\s*](?:[^*\n]{0,500}[^\s*])?)\*\*/.source,
    /(?<![\w_])__(?<strong2>[^\s_](?:[^_\n]{0,500}[^\s_])?)__(?![\w_])/.source,
    /~~(?<gone>[^\s~](?:[^~\n]{0,500}[^\s~])?)~~/.source,
    /(?<![\w*])\*(?<em>[^\s*](?:[^*\n]{0,500}[^\s*])?)\*(?![\w*])/.source,
    /(?<![\w_])_(?<em2>[^\s_](?:[^_\n]{0,500}[^\s_])?)_(?![\w_])/.source,
  ].join("|"),
  "gu",
);

/** Reads a line or a paragraph into runs of text. */
export function inline(text, depth = 0) {
  const runs = [];
  const plain = (value) => {
    if (value === "") return;
    const last = runs.at(-1);
    if (last?.type === "text") last.text += value;
    else runs.push({ type: "text", text: value });
  };
  let done = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index < done) continue;
    plain(text.slice(done, match.index));
    done = match.index + match[0].length;
    const found = match.groups;
    const nested = (value) => (depth < 3 ? inline(value, depth + 1) : [{ type: "text", text: value }]);
    if (found.code !== undefined) runs.push({ type: "code", text: found.code.replace(/^ (.*[^ ].*) $/s, "$1") });
    else if (found.escaped !== undefined) plain(found.escaped);
    else if (found.label !== undefined) {
      const href = safeLink(found.target);
      if (href) runs.push({ type: "link", href, runs: nested(found.label || found.target) });
      else plain(match[0]);
    } else if (found.auto !== undefined || found.bare !== undefined) {
      const [address, rest] = found.auto !== undefined ? [found.auto, ""] : trimAddress(found.bare);
      const href = safeLink(address);
      if (href) runs.push({ type: "link", href, runs: [{ type: "text", text: address }] });
      else plain(address);
      plain(rest);
    } else if (found.gone !== undefined) runs.push({ type: "gone", runs: nested(found.gone) });
    else if ((found.strong ?? found.strong2) !== undefined) runs.push({ type: "strong", runs: nested(found.strong ?? found.strong2) });
    else runs.push({ type: "em", runs: nested(found.em ?? found.em2) });
  }
  plain(text.slice(done));
  return runs;
}

/** Takes the punctuation off that ends the sentence rather than the address. */
function trimAddress(address) {
  let end = address.length;
  while (end > 0 && /[.,;:!?*_~\]]/.test(address[end - 1])) end -= 1;
  const opened = address.slice(0, end);
  if (opened.endsWith(")") && opened.split("(").length < opened.split(")").length) end -= 1;
  return [address.slice(0, end), address.slice(end)];
}

/** The address, if following it can do no harm: no script, no file, nothing relative. */
export function safeLink(target) {
  try {
    const url = new URL(target);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** Shows text as elements. `breaks` keeps the line breaks of what a person typed. */
export function render(text, { breaks = false } = {}) {
  return parse(text).map((block) => renderBlock(block, breaks));
}

function renderBlock(block, breaks) {
  switch (block.type) {
    case "heading":
      return el(`h${Math.min(block.level + 2, 6)}`, {}, renderInline(block.text, false));
    case "code":
      return codeBlock(block.text, block.language);
    case "rule":
      return el("hr");
    case "quote":
      return el("blockquote", {}, block.blocks.map((inner) => renderBlock(inner, breaks)));
    case "list":
      return el(
        block.ordered ? "ol" : "ul",
        { start: block.ordered && block.start !== 1 ? block.start : null },
        block.items.map((item) => renderItem(item, breaks)),
      );
    case "table":
      return el(
        "div",
        { class: "table", tabindex: "0" },
        el(
          "table",
          {},
          el("thead", {}, el("tr", {}, block.head.map((cell) => el("th", {}, renderInline(cell, false))))),
          el("tbody", {}, block.rows.map((row) => el("tr", {}, block.head.map((_, at) => el("td", {}, renderInline(row[at] ?? "", false)))))),
        ),
      );
    default:
      return el("p", {}, renderInline(block.text, breaks));
  }
}

/** A list item of one paragraph is shown without one. */
function renderItem(blocks, breaks) {
  const [first, ...rest] = blocks;
  if (first?.type !== "paragraph") return el("li", {}, blocks.map((block) => renderBlock(block, breaks)));
  const task = TASK.exec(first.text);
  const mark = task ? el("span", { class: `task${task[1] === " " ? "" : " done"}`, role: "img", "aria-label": task[1] === " " ? "open" : "done" }) : null;
  const text = renderInline(task ? task[2] : first.text, breaks);
  return el("li", { class: task ? "has-task" : null }, mark, text, rest.map((block) => renderBlock(block, breaks)));
}

function renderInline(text, breaks) {
  return inline(text).flatMap((run) => renderRun(run, breaks));
}

function renderRun(run, breaks) {
  const inner = () => run.runs.flatMap((nested) => renderRun(nested, breaks));
  switch (run.type) {
    case "code":
      return el("code", {}, run.text.replaceAll("\n", " "));
    case "strong":
      return el("strong", {}, inner());
    case "em":
      return el("em", {}, inner());
    case "gone":
      return el("s", {}, inner());
    case "link":
      return el("a", { href: run.href, target: "_blank", rel: "noopener noreferrer nofollow" }, inner());
    default:
      return breaks ? run.text.split("\n").flatMap((line, at) => (at > 0 ? [el("br"), line] : [line])) : [run.text];
  }
}

/** A block of code, with a button that copies it. */
export function codeBlock(text, language = "") {
  const copy = el("button", { class: "copy", type: "button", title: "Copy", "aria-label": "Copy the code" }, icon("copy"));
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.classList.add("copied");
      setTimeout(() => copy.classList.remove("copied"), 1200);
    } catch {
      // Without permission there is nothing to do: the text can still be selected.
    }
  });
  return el(
    "figure",
    { class: "code" },
    el("figcaption", {}, el("span", {}, language || "text"), copy),
    el("pre", { tabindex: "0" }, el("code", {}, text)),
  );
}
