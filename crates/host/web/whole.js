// Whole messages. A page shows calls, thoughts and files by reference; what they stand for is asked
// for when somebody opens one.

/** How many messages are asked for at a time. */
const MAX_ASKING = 4;
/** How many are kept: some carry megabytes. */
const MAX_KEPT = 40;

/** The messages of one session, each asked for once as long as it does not change. */
export class WholeMessages {
  /** `ask` takes the id of a message and promises all of it. */
  constructor(ask) {
    this.ask = ask;
    this.kept = new Map();
    this.asking = 0;
    this.waiting = [];
  }

  /** The part that this part of a page stands for, if it is here. */
  known(record, part) {
    const entry = this.kept.get(record.info?.id);
    return entry?.whole && entry.print === print(record) ? partIn(entry.whole, record, part) : undefined;
  }

  /** Promises the part that this part of a page stands for; `undefined` when it is gone. */
  async part(record, part) {
    return partIn(await this.#message(record), record, part);
  }

  #message(record) {
    const id = record.info.id;
    const now = print(record);
    const kept = this.kept.get(id);
    this.kept.delete(id);
    if (kept?.print === now) {
      this.kept.set(id, kept);
      return kept.promise;
    }
    const entry = { print: now, whole: null, promise: null };
    entry.promise = this.#inTurn(() => this.ask(id)).then(
      (whole) => (entry.whole = whole),
      (error) => {
        if (this.kept.get(id) === entry) this.kept.delete(id);
        throw error;
      },
    );
    this.kept.set(id, entry);
    while (this.kept.size > MAX_KEPT) this.kept.delete(this.kept.keys().next().value);
    return entry.promise;
  }

  async #inTurn(task) {
    if (this.asking >= MAX_ASKING) await new Promise((resolve) => this.waiting.push(resolve));
    else this.asking += 1;
    try {
      return await task();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.asking -= 1;
    }
  }
}

/** What a message looked like on its page: when that changes, so may what is behind it. */
function print(record) {
  return JSON.stringify(record);
}

function partIn(whole, record, part) {
  const parts = Array.isArray(whole?.parts) ? whole.parts : [];
  if (typeof part.id === "string") return parts.find((candidate) => candidate?.id === part.id);
  const same = parts[record.parts.indexOf(part)];
  return same?.type === part.type ? same : undefined;
}
