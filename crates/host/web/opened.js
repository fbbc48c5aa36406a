// What stands behind a line that opens: it is looked up when it is opened.

import { ApiError } from "./api.js";
import { el, fill, withCode } from "./dom.js";
import { bytes } from "./format.js";

/** Longer texts are shown up to here first, in UTF-16 units. */
const MAX_SHOWN = 200_000;

/**
 * A line that opens. `shown` makes the content of a part; a part that is only a reference is asked
 * for first. `lookup` is `{record, messages}`, or nothing when there is nobody to ask.
 */
export function opening(summary, part, shown, lookup) {
  const body = el("div", { class: "more" });
  const details = el("details", { class: "tool" }, summary, body);
  if (typeof part.id === "string") details.dataset.part = part.id;
  details.print = JSON.stringify(part);
  details.lookup = lookup;
  if (part.slim !== true || !lookup?.messages) {
    fill(body, shown(part));
    return details;
  }
  let isAsked = false;
  const show = async () => {
    const { record, messages } = details.lookup;
    const known = messages.known(record, part);
    if (known) {
      fill(body, shown(known));
      return;
    }
    fill(body, el("p", { class: "loading", role: "status" }, "Loading…"));
    try {
      const whole = await messages.part(record, part);
      fill(body, whole ? shown(whole) : el("p", { class: "muted" }, "This is not in the session any more."));
    } catch (error) {
      isAsked = false;
      if (error.name === "AbortError") return;
      if (!(error instanceof ApiError)) throw error;
      fill(body, el("p", { class: "muted", role: "alert" }, withCode(error.message), " ", error.isLasting ? null : again()));
    }
  };
  const again = () => el("button", { class: "unfold", type: "button", onclick: open }, "Try again");
  const open = () => {
    if (isAsked) return;
    isAsked = true;
    show();
  };
  details.addEventListener("toggle", () => {
    if (details.open) open();
  });
  // What was looked up already is there at once, so that nothing jumps.
  if (lookup.messages.known(lookup.record, part)) open();
  return details;
}

/** A text in a box that scrolls; the end of a very long one is left out until it is wanted. */
export function longText(text, label) {
  const box = el("pre", { tabindex: "0", role: "region", "aria-label": label });
  if (text.length <= MAX_SHOWN) {
    fill(box, text);
    return box;
  }
  // Not in the middle of a character.
  const end = /[\ud800-\udbff]/.test(text[MAX_SHOWN - 1]) ? MAX_SHOWN - 1 : MAX_SHOWN;
  fill(box, text.slice(0, end));
  const all = el("button", { class: "unfold", type: "button" }, `Show all ${bytes(new Blob([text]).size)}`);
  all.addEventListener("click", () => {
    fill(box, text);
    all.remove();
    box.focus();
  });
  return [box, all];
}
