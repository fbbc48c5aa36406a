// What the reader asks the host for.

import { LOCKED } from "./login.js";

/** Why a request has no answer, with a sentence for the reader: `code` words stand in backticks. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }

  /** Whether the same request would have the same answer. */
  get isLasting() {
    return this.status === 404 || this.status === 422;
  }
}

const SENTENCES = {
  session_not_found: () => "There is no such session here.",
  not_found: () => "There is no such message any more.",
  corrupt: (body) => `The log of this session is damaged. \`turnkeep events ${body.session ?? "ID"}\` says where.`,
  format_unsupported: () => "The log of this session is in a format that this version of turnkeep does not read.",
  "upstream unavailable": () => "OpenCode does not answer. It may be starting, or not running.",
  "upstream timeout": () => "OpenCode took too long to answer.",
  upstream: () => "OpenCode did not give an answer that makes sense.",
  "authentication required": () => "You have to log in to read this.",
  insufficient_scope: () => "Your token does not allow that.",
  "invalid cursor": () => "The place to read on from is gone. Reload to start from the newest turns.",
};

async function get(path, parameters, signal, known) {
  const url = new URL(path, location.origin);
  for (const [key, value] of Object.entries(parameters ?? {})) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(key, value);
  }
  let [response, body] = [null, null];
  try {
    response = await fetch(url, { signal, cache: "no-cache", headers: { accept: "application/json" } });
    const tag = response.headers.get("etag");
    if (response.ok && tag !== null && tag === known) {
      await response.body?.cancel();
      return { tag, body: null };
    }
    body = await response.json();
    if (response.ok && body !== null) return { tag, body };
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (response === null) throw new ApiError(0, "unreachable", "turnkeep does not answer. Is it still running?");
  }
  if (response.status === 401) window.dispatchEvent(new Event(LOCKED));
  const code = body?.code ?? body?.error ?? "";
  const sentence = SENTENCES[code]?.(body);
  throw new ApiError(response.status, code, sentence ?? `turnkeep answered ${response.status}${body?.error ? `: ${body.error}` : ""}.`);
}

/** What OpenCode says under a path of its own, for a directory; `null` when it does not say. */
export async function askOpenCode(path, directory) {
  const url = new URL(`/api/${path}`, location.origin);
  if (typeof directory === "string") url.searchParams.set("directory", directory);
  try {
    const response = await fetch(url, { cache: "no-store", headers: { accept: "application/json" } });
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

/** A page of the session list, as `{tag, body}`; without a body when it is the one of tag `known`. */
export function listSessions({ cursor, q }, signal, known) {
  return get("/api/turnkeep/sessions", { cursor, q, limit: 40 }, signal, known);
}

/** What is known of one session, its title included. */
export async function getSession(id, signal) {
  return (await get(`/api/turnkeep/sessions/${encodeURIComponent(id)}`, {}, signal)).body;
}

/** A page of turns, the newest or those before a cursor, in the form of `listSessions`. */
export function getTurns(id, { turns, before }, signal, known) {
  return get(`/api/openchamber/sessions/${encodeURIComponent(id)}/messages`, { turns, before }, signal, known);
}

/** Where a stored session is had as an archive. */
export function exportPath(id) {
  return `/api/session.export?sessionId=${encodeURIComponent(id)}`;
}

/** One message with everything in it. */
export async function getMessage(session, message, signal) {
  return (await get(`/api/session/${encodeURIComponent(session)}/message/${encodeURIComponent(message)}`, {}, signal)).body;
}
