// Hearing from the host when something happens, rather than asking.

/** How long to wait before the stream is opened anew when the host has refused it, in milliseconds. */
const AGAIN = 15_000;

/** Which session an event is about; null when it is about none. */
export function sessionOf(payload) {
  const body = payload?.properties ?? {};
  const isSession = /^session\.(created|updated|deleted)/.test(payload?.type ?? "");
  return body.sessionID ?? body.part?.sessionID ?? body.info?.sessionID ?? (isSession ? body.info?.id : null) ?? null;
}

/**
 * Calls `act` for what is asked of it, but never more often than each `every` milliseconds; what is
 * asked in between is done once, at the end of that time.
 */
export function paced(act, every, clock = globalThis) {
  let [isPausing, isWanted] = [false, false];
  const ask = () => {
    isWanted = isPausing;
    if (isPausing) return;
    isPausing = true;
    clock.setTimeout(() => {
      isPausing = false;
      if (isWanted) ask();
    }, every);
    act();
  };
  return ask;
}

/**
 * Listens to the host's events as long as the page is visible. `heard` is given the session that
 * something happened in and the event, and null when anything may have happened meanwhile. Answers with a
 * function that says whether events arrive.
 */
export function listen(heard, { page = document, open = (url) => new EventSource(url), clock = globalThis } = {}) {
  let [stream, isOpen, timer] = [null, false, null];
  const stop = () => {
    clock.clearTimeout(timer);
    stream?.close();
    [stream, isOpen] = [null, false];
  };
  const start = () => {
    stop();
    if (page.visibilityState !== "visible") return;
    const opened = open("/api/global/event?includeReasoning=false");
    stream = opened;
    opened.onopen = () => {
      isOpen = true;
      heard(null);
    };
    opened.onmessage = ({ data }) => {
      const { payload } = JSON.parse(data);
      if (payload?.type === "turnkeep.reset") heard(null);
      const session = sessionOf(payload);
      if (session !== null) heard(session, payload);
    };
    opened.onerror = () => {
      isOpen = false;
      // Asking goes on at its own pace from here.
      heard(null);
      // The browser comes back by itself, unless it was refused: then it is asked to, later.
      if (opened.readyState === 2) timer = clock.setTimeout(start, AGAIN);
    };
  };
  page.addEventListener("visibilitychange", start);
  start();
  return () => isOpen;
}
