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
