// Numbers, times and paths as people read them.

const DAY = 86_400_000;
const UNITS = [
  ["day", DAY],
  ["hour", 3_600_000],
  ["minute", 60_000],
];
const BYTES = ["B", "KB", "MB", "GB"];

const time = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const dayMonth = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const dayMonthYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });

function startOfDay(ms) {
  const date = new Date(ms);
  date.setHours(0, 0, 0, 0);
  return date.getTime();
}

function date(ms, now) {
  return (new Date(ms).getFullYear() === new Date(now).getFullYear() ? dayMonth : dayMonthYear).format(ms);
}

/** "now", "5 min. ago", "yesterday", "3 Mar". */
export function ago(ms, now = Date.now()) {
  if (typeof ms !== "number") return "";
  const age = now - ms;
  if (age > 6 * DAY) return date(ms, now);
  for (const [unit, length] of UNITS) {
    if (age >= length) return relative.format(-Math.floor(age / length), unit);
  }
  return "now";
}

/** The day a list groups by: "Today", "Yesterday", "3 Mar". */
export function day(ms, now = Date.now()) {
  const days = Math.round((startOfDay(now) - startOfDay(ms)) / DAY);
  if (days <= 0) return "Today";
  return days === 1 ? "Yesterday" : date(ms, now);
}

/** "14:03" today, "3 Mar, 14:03" before. */
export function moment(ms, now = Date.now()) {
  if (typeof ms !== "number") return "";
  return startOfDay(ms) === startOfDay(now) ? time.format(ms) : `${date(ms, now)}, ${time.format(ms)}`;
}

/** Everything about a time, for a tooltip. */
export function fullTime(ms) {
  return typeof ms === "number" ? full.format(ms) : "";
}

/** "340 ms", "2.1 s", "3 min 5 s". */
export function duration(ms) {
  if (typeof ms !== "number" || !(ms >= 0)) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${seconds % 60} s`;
}

/** "12 KB". */
export function bytes(count) {
  if (typeof count !== "number") return "";
  let [value, unit] = [count, 0];
  while (value >= 1000 && unit < BYTES.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${BYTES[unit]}`;
}

/** "1.3k". */
export function count(number) {
  if (typeof number !== "number") return "";
  if (number < 1000) return String(number);
  return number < 10_000 ? `${(number / 1000).toFixed(1)}k` : `${Math.round(number / 1000)}k`;
}

/** One thing, several things. */
export function plural(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

/** A session's title; OpenCode's own for a session without one ends in a time that helps nobody. */
export function titleOf(session) {
  if (typeof session?.title !== "string") return "";
  return session.title.replace(/^((?:New|Child) session) - \d{4}-\d\d-\d\dT[\d:.]+Z$/, "$1");
}

/** The path as seen from the session's directory, also one that is told from the root without its slash. */
export function shortPath(path, cwd) {
  if (typeof path !== "string") return "";
  const base = typeof cwd === "string" ? cwd.replace(/\/+$/, "") : "";
  if (base === "") return path;
  if (path === base) return ".";
  const start = [base, base.replace(/^\/+/, "")].find((start) => path.startsWith(`${start}/`));
  return start === undefined ? path : path.slice(start.length + 1) || ".";
}

/** The last segment of a path. */
export function lastSegment(path) {
  if (typeof path !== "string") return "";
  return path.split("/").filter(Boolean).pop() ?? path;
}
