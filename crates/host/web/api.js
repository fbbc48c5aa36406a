// What the reader asks the host for.

/** Why a request has no answer, with a sentence for the reader. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const SENTENCES = {
  session_not_found: "There is no such session here.",
  corrupt: "The log of this session is damaged. `turnkeep verify` says what can still be read.",
  format_unsupported: "The log of this session is in a format that this version does not read.",
  "upstream unavailable": "OpenCode does not answer. It may be starting, or not running.",
  "upstream timeout": "OpenCode took too long to answer.",
  upstream: "OpenCode did not give an answer that makes sense.",
  "invalid cursor": "The place to read on from is gone. Reload to start from the newest turns.",
};

async function get(path, parameters, signal) {
  const url = new URL(path, location.origin);
  for (const [key, value] of Object.entries(parameters ?? {})) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(key, value);
  }
  let response;
  try {
    response = await fetch(url, { signal, headers: { accept: "application/json" } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The host does not answer. Is turnkeep still running?");
  }
  const body = await response.json().catch(() => null);
  if (!response.ok || body === null) {
    const code = body?.code ?? body?.error ?? "";
    const message = SENTENCES[code] ?? `The host answered ${response.status}${body?.error ? `: ${body.error}` : ""}.`;
    throw new ApiError(response.status, code, message);
  }
  return body;
}

/** A page of the session list. */
export function listSessions({ cursor, q }, signal) {
  return get("/api/turnkeep/sessions", { cursor, q, limit: 40 }, signal);
}

/** What is known of one session, its title included. */
export function getSession(id, signal) {
  return get(`/api/turnkeep/sessions/${encodeURIComponent(id)}`, {}, signal);
}

/** A page of turns: the newest, or those before a cursor. */
export function getTurns(id, { turns, before, directory }, signal) {
  return get(`/api/openchamber/sessions/${encodeURIComponent(id)}/messages`, { turns, before, directory }, signal);
}
