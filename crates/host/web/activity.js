// What sessions are doing: as events tell, and as OpenCode says when it is asked.

const WORDS = new Set(["busy", "retry", "idle"]);

/** The state of every session that something is known of. */
export class Activity {
  /** Of a session, its word and when it was heard, counted in events. */
  #sessions = new Map();
  /** Of a request for a permission, the session that waits for it. */
  #waiting = new Map();
  /** The requests that were answered: a list that was asked for before may still hold them. */
  #answered = new Set();
  #heard = 0;
  #epoch = 0;

  /** What a session does: "waiting" for a permission, "busy", about to "retry", "idle" or "unknown". */
  of(session) {
    if ([...this.#waiting.values()].includes(session)) return "waiting";
    return this.#sessions.get(session)?.word ?? "unknown";
  }

  /** Takes an event in, and answers whether it changed what its session does. */
  take(payload) {
    const { sessionID: session, status, id, requestID } = payload?.properties ?? {};
    if (typeof session !== "string") return false;
    this.#heard += 1;
    const before = this.of(session);
    switch (payload.type) {
      case "session.status":
        this.#set(session, status?.type);
        break;
      case "session.idle":
        this.#set(session, "idle");
        break;
      case "permission.asked":
        this.#waiting.set(id ?? requestID, session);
        break;
      case "permission.replied":
        this.#waiting.delete(requestID ?? id);
        this.#answered.add(requestID ?? id);
        break;
    }
    return this.of(session) !== before;
  }

  #set(session, word) {
    if (!WORDS.has(word)) return;
    this.#sessions.set(session, { word, at: this.#heard });
    // Whoever is through waits for nothing, whether or not the answer was told.
    if (word === "idle") this.#drop(session);
  }

  #drop(session) {
    for (const [request, of] of this.#waiting) {
      if (of === session) this.#waiting.delete(request);
    }
  }

  /** Forgets everything, since events may have been missed. */
  forget() {
    this.#epoch += 1;
    for (const known of [this.#sessions, this.#waiting, this.#answered]) known.clear();
  }

  /**
   * Finds out what a session does, and those beside it. `ask` takes a path of OpenCode's and
   * promises what it says, `null` for nothing. Events that arrive meanwhile are newer and stay.
   */
  async find(session, ask) {
    const [heard, epoch] = [this.#heard, this.#epoch];
    const [statuses, requests] = await Promise.all([ask("session/status"), ask("permission")]);
    if (epoch !== this.#epoch) return;
    const set = (id, word) => {
      if (WORDS.has(word) && !(this.#sessions.get(id)?.at > heard)) this.#sessions.set(id, { word, at: heard });
    };
    if (statuses !== null && typeof statuses === "object" && !Array.isArray(statuses)) {
      for (const [id, status] of Object.entries(statuses)) set(id, status?.type);
      // Only those that do something are named.
      if (!Object.hasOwn(statuses, session)) set(session, "idle");
    }
    for (const request of Array.isArray(requests) ? requests : []) {
      const { id, sessionID } = request ?? {};
      if (typeof id !== "string" || typeof sessionID !== "string" || this.#answered.has(id)) continue;
      if (this.#sessions.get(sessionID)?.word !== "idle") this.#waiting.set(id, sessionID);
    }
  }
}

/** Whether more is to come of a session in this state. */
export function isActive(state) {
  return state === "waiting" || state === "busy" || state === "retry";
}

/** What to say of a session in this state where there is little room; nothing of one that rests. */
export function stateWord(state) {
  return { waiting: "Waiting for a permission", busy: "Writing…", retry: "Trying again…" }[state] ?? "";
}

/**
 * What to say at the end of a transcript, nothing when all is said: `end` is "open" when the last
 * answer has no end, "unanswered" when there is none, and anything else otherwise.
 */
export function endWord(end, state) {
  if (isActive(state)) return stateWord(state);
  if (end === "unanswered") return state === "idle" ? "There is no answer." : "There is no answer yet.";
  if (end !== "open") return "";
  return state === "idle" ? "The last answer has no end: it was cut off." : "The last answer has no end: it is being written, or was cut off.";
}
