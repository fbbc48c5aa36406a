// From the records of a page to the turns that a person sees.

/** Whether a person wrote the record, so that a turn starts at it. The host counts the same way. */
export function isPrompt(record) {
  const info = record.info ?? {};
  if (typeof info.id === "string" && info.id.startsWith("oc_asst_session_divider:")) return false;
  const role = typeof info.clientRole === "string" ? info.clientRole : info.role;
  if (role !== "user") return false;
  const parts = Array.isArray(record.parts) ? record.parts : [];
  if (parts.length === 0) return true;
  const objects = parts.filter((part) => part !== null && typeof part === "object");
  if (objects.some((part) => part.type === "subtask" || part.type === "compaction")) return false;
  return !(objects.length === parts.length && objects.every((part) => part.synthetic));
}

/** Groups records, old to new, into turns: a prompt and everything up to the next one. */
export function toTurns(records) {
  const turns = [];
  for (const record of records) {
    if (isPrompt(record)) turns.push({ id: record.info.id, prompt: record, rest: [] });
    else if (turns.length === 0) turns.push({ id: record.info.id, prompt: null, rest: [record] });
    else turns.at(-1).rest.push(record);
  }
  return turns;
}

/**
 * The turns that are shown and the newest ones as one list; `null` when there is a gap in between.
 * A page may begin in the middle of a turn, and a turn that is shown may begin there too.
 */
export function joinNewer(shown, newest) {
  const [first, ...later] = newest;
  if (first === undefined || shown.length === 0) return newest;
  const at = shown.findIndex((turn) => recordsOf(turn).some((record) => record.info?.id === first.id));
  if (at < 0) return null;
  const old = shown[at];
  if (first.prompt || old.id === first.id) return [...shown.slice(0, at), ...newest];
  const kept = old.rest.slice(0, old.rest.findIndex((record) => record.info?.id === first.id));
  return [...shown.slice(0, at), { ...old, rest: [...kept, ...first.rest] }, ...later];
}

/** Older turns and the turns that are shown, which go on right behind them. */
export function joinOlder(older, shown) {
  const [first, ...later] = shown;
  if (older.length === 0 || first === undefined || first.prompt) return [...older, ...shown];
  const last = older.at(-1);
  return [...older.slice(0, -1), { ...last, rest: [...last.rest, ...first.rest] }, ...later];
}

/** The records of a turn, old to new. */
export function recordsOf(turn) {
  return turn.prompt ? [turn.prompt, ...turn.rest] : turn.rest;
}

/** Whether more is to come at the end of these turns, as far as can be told. */
export function isOpen(turns) {
  const last = turns.at(-1);
  return last !== undefined && (summarize(last).open || (last.prompt !== null && last.rest.length === 0));
}

/** How these turns end: "open" in an answer without an end, "unanswered", or "closed". */
export function endOf(turns) {
  if (!isOpen(turns)) return "closed";
  return summarize(turns.at(-1)).open ? "open" : "unanswered";
}

/** What there is to say at the end of a turn. */
export function summarize(turn) {
  const answers = turn.rest.filter((record) => record.info?.role === "assistant");
  const last = answers.at(-1)?.info;
  const started = turn.prompt?.info?.time?.created ?? answers[0]?.info?.time?.created;
  const ended = last?.time?.completed;
  const sum = (read) => answers.reduce((total, { info }) => total + (Number(read(info)) || 0), 0);
  return {
    model: last?.modelID,
    duration: typeof started === "number" && typeof ended === "number" ? ended - started : undefined,
    output: sum((info) => info.tokens?.output),
    cost: sum((info) => info.cost),
    diffs: Array.isArray(turn.prompt?.info?.summary?.diffs) ? turn.prompt.info.summary.diffs : [],
    open: last !== undefined && typeof ended !== "number" && !last.error && !last.finish,
  };
}
