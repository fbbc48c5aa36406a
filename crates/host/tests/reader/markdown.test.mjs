import assert from "node:assert/strict";
import { test } from "node:test";

import { inline, parse, safeLink } from "../../web/markdown.js";

const text = (value) => ({ type: "text", text: value });
const paragraph = (value) => ({ type: "paragraph", text: value });

test("blocks are told apart", () => {
  assert.deepEqual(parse("# One #\n\nTwo\nlines\n***\n> quoted\n> more"), [
    { type: "heading", level: 1, text: "One" },
    paragraph("Two\nlines"),
    { type: "rule" },
    { type: "quote", blocks: [paragraph("quoted\nmore")] },
  ]);
});

test("lists nest, go on after blank lines, and start where they start", () => {
  assert.deepEqual(parse("- a\n  more\n  - b\n\n- c\n\n3. d\n4. e"), [
    {
      type: "list",
      ordered: false,
      start: 1,
      items: [[paragraph("a\nmore"), { type: "list", ordered: false, start: 1, items: [[paragraph("b")]] }], [paragraph("c")]],
    },
    { type: "list", ordered: true, start: 3, items: [[paragraph("d")], [paragraph("e")]] },
  ]);
  assert.deepEqual(parse("in\n1984. It was"), [paragraph("in\n1984. It was")]);
});

test("fenced code is left alone, also one that never ends", () => {
  assert.deepEqual(parse("```rust\nlet a = `b`;\n# no heading\n```\nafter"), [
    { type: "code", language: "rust", text: "let a = `b`;\n# no heading" },
    paragraph("after"),
  ]);
  assert.deepEqual(parse("~~~\nhalf"), [{ type: "code", language: "", text: "half" }]);
  const nested = parse("- item\n\n  ```\n  code\n  ```");
  assert.deepEqual(nested[0].items[0], [paragraph("item"), { type: "code", language: "", text: "code" }]);
});

test("tables have rows and escaped bars", () => {
  assert.deepEqual(parse("| a | b |\n|---|:-:|\n| 1 | x \\| y |\n\nend"), [
    { type: "table", head: ["a", "b"], rows: [["1", "x | y"]] },
    paragraph("end"),
  ]);
});

test("runs are told apart", () => {
  assert.deepEqual(inline("a `b*c*` **d _e_** ~~f~~ \\*g\\*"), [
    text("a "),
    { type: "code", text: "b*c*" },
    text(" "),
    { type: "strong", runs: [text("d "), { type: "em", runs: [text("e")] }] },
    text(" "),
    { type: "gone", runs: [text("f")] },
    text(" *g*"),
  ]);
  assert.deepEqual(inline("snake_case_name and 2*3*4"), [text("snake_case_name and 2*3*4")]);
  assert.deepEqual(inline("``a ` b``"), [{ type: "code", text: "a ` b" }]);
});

test("addresses end where the sentence goes on", () => {
  const link = (href, label) => ({ type: "link", href, runs: [text(label)] });
  assert.deepEqual(inline("see https://e.com/a_(b), or (https://e.com/c)."), [
    text("see "),
    link("https://e.com/a_(b)", "https://e.com/a_(b)"),
    text(", or ("),
    link("https://e.com/c", "https://e.com/c"),
    text(")."),
  ]);
  assert.deepEqual(inline("[x](https://e.com/a_(b))"), [link("https://e.com/a_(b)", "x")]);
});

test("no link does anything but lead to a page", () => {
  for (const target of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "file:///etc/passwd", "vbscript:x", "/relative", "#hash", "//e.com"]) {
    assert.equal(safeLink(target), null, target);
    assert.ok(inline(`[x](${target})`).every((run) => run.type === "text"), target);
  }
  assert.equal(safeLink("mailto:a@e.com"), "mailto:a@e.com");
});

test("hostile texts take no time", () => {
  const started = performance.now();
  for (const piece of ["*", "`", "[", "_a ", "**a ", "`a ", "[a](", "<http://", "``a ` ", "- ", "> ", "- a\n", "|-", "| a |\n|--|\n", "1. ", "```\n"]) {
    const hostile = piece.repeat(20_000);
    inline(hostile);
    parse(hostile);
  }
  assert.ok(performance.now() - started < 5_000, `${performance.now() - started} ms`);
});
