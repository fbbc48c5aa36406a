// Building elements. Text only ever enters the page as text: there is no way here to pass markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with these attributes and children; `null` and `false` children are left out. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Puts these children in place of what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
}

/** A sentence in which `these` are things to type. */
export function withCode(sentence) {
  return sentence.split("`").map((text, at) => (at % 2 === 1 ? el("code", {}, text) : text));
}

// Drawn on a 16 by 16 grid, as strokes.
const ICONS = {
  back: "M10 3 5 8l5 5",
  download: "M8 2.5v7.5M4.8 7 8 10.2 11.2 7M3 13h10",
  reload: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3",
  chevron: "m6 4 4 4-4 4",
  copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
  terminal: "m3.5 5 3 3-3 3M8.5 11.5h4",
  file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
  pencil: "m3.5 12.5.6-2.6 6.7-6.7 2 2-6.7 6.7z",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.3 10.3l3 3",
  globe: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM2.5 8h11M8 2.5c3 3.4 3 7.6 0 11-3-3.4-3-7.6 0-11Z",
  list: "M6 4.5h7M6 8h7M6 11.5h7M3 4.5h.01M3 8h.01M3 11.5h.01",
  branch: "M5 3v10M5 9.5c4 0 6-1 6-4.5M11 5V3.5",
  thought: "M8 2.5v2M8 11.5v2M2.5 8h2M11.5 8h2M4.1 4.1l1.4 1.4M10.5 10.5l1.4 1.4M4.1 11.9l1.4-1.4M10.5 5.5l1.4-1.4",
  image: "M3 3.5h10v9H3zM3 10.5l3-3 3 3 1.5-1.5 2.5 2.5M10 6.2h.01",
  spark: "M8 2.5 9.3 6.7 13.5 8l-4.2 1.3L8 13.5 6.7 9.3 2.5 8l4.2-1.3z",
  warning: "M8 2.8 14 13H2zM8 6.7v2.8M8 11.3h.01",
  stop: "M5 5h6v6H5z",
  dot: "M8 8h.01",
};

/** A small picture that says nothing a reader of the text would miss. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" })) {
    svg.setAttribute(key, value);
  }
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name] ?? ICONS.dot);
  svg.append(path);
  return svg;
}
