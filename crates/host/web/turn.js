// One turn as an element, and what is kept of it when it has grown.

import { el } from "./dom.js";
import { count, duration, fullTime, moment } from "./format.js";
import { answerParts, diffList, promptParts } from "./parts.js";
import { summarize } from "./turns.js";

/** Prompts taller than this many pixels are folded. */
const TALL_PROMPT = 360;

/** The element of a turn. `isLive` says that it goes on, so that nothing is summed up yet, `messages` is where whole messages come from. */
export function turnElement(turn, { cwd, isLive, messages }) {
  const facts = summarize(turn);
  const answers = answerParts(turn.rest, { cwd, listed: facts.diffs.length > 0, isLive, messages });
  const created = turn.prompt?.info?.time?.created;
  return el(
    "article",
    { class: "turn", "aria-label": created ? `Turn of ${moment(created)}` : "Turn" },
    turn.prompt
      ? el(
          "section",
          { class: "prompt", "aria-label": "Prompt" },
          el("header", {}, el("span", { class: "who" }, "Prompt"), el("time", { title: fullTime(created) }, moment(created))),
          el("div", { class: "prompt-body" }, promptParts(turn.prompt, messages)),
        )
      : null,
    answers.length > 0 ? el("section", { class: "answer", "aria-label": "Answer" }, answers) : null,
    el("footer", {}, diffList(facts.diffs, cwd), isLive ? null : factLine(facts)),
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

/** Folds a prompt that would fill the page. The element must be in the page. */
export function foldTall(element) {
  const body = element.querySelector(".prompt-body");
  if (!body || body.scrollHeight <= TALL_PROMPT + 80) return;
  body.classList.add("tall");
  const more = el("button", { class: "unfold whole-prompt", type: "button" }, "Show the whole prompt");
  more.addEventListener("click", () => {
    body.classList.remove("tall");
    body.dataset.unfolded = "";
    more.remove();
  });
  body.after(more);
}

/**
 * Puts a turn in the place of what it was before, and leaves what a reader has opened as it is:
 * lines that did not change move over with everything in them, unless all are to be made `anew`.
 */
export function replaceTurn(old, fresh, anew = false) {
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const scrolled = [...old.querySelectorAll("pre")].filter((box) => box.scrollTop > 0 || box.scrollLeft > 0);
  const places = scrolled.map((box) => [box, box.scrollTop, box.scrollLeft]);
  unfoldAlike(old, fresh);
  const lines = new Map([...old.querySelectorAll("details[data-part]")].map((line) => [line.dataset.part, line]));
  for (const line of fresh.querySelectorAll("details[data-part]")) {
    const before = lines.get(line.dataset.part);
    if (!anew && before?.print === line.print) {
      before.lookup = line.lookup;
      line.replaceWith(before);
    } else if (before?.open) line.open = true;
  }
  const others = (turn) => [...turn.querySelectorAll(".folded, .diffs")];
  const wereOpen = others(old).map((details) => details.open);
  others(fresh).forEach((details, at) => (details.open = wereOpen[at] ?? false));
  const prompts = [old, fresh].map((turn) => turn.querySelector(".prompt"));
  const isSame = !anew && prompts.every(Boolean) && old.promptPrint === fresh.promptPrint;
  if (isSame) prompts[1].replaceWith(prompts[0]);
  old.replaceWith(fresh);
  if (!isSame) foldTall(fresh);
  for (const [box, top, left] of places) box.scrollTo(left, top);
  if (focused?.isConnected) focused.focus({ preventScroll: true });
}

/** Groups grow at their ends, so the same one has the same place. */
function unfoldAlike(old, fresh) {
  const before = [...old.querySelectorAll(".rows")];
  [...fresh.querySelectorAll(".rows")].forEach((group, at) => {
    if (before[at]?.isUnfolded) group.unfold?.();
  });
}
