// Asking again, as long as somebody looks.

/** How often, in milliseconds, while something is under way and while nothing is. */
const BUSY = 2000;
const IDLE = 5000;
/** How often when the host tells of what happens: only in case something goes untold. */
const TOLD = 30_000;
/** How long to wait at most when there is no answer. */
const LONGEST = 60_000;

/** How long to wait before the next request, after so many without an answer. */
export function pause(isBusy, failures, isTold = false) {
  const usual = isTold ? TOLD : isBusy ? BUSY : IDLE;
  return failures === 0 ? usual : Math.max(usual, Math.min(LONGEST, IDLE * 2 ** (failures - 1)));
}

/**
 * Calls `ask` again and again while the page is visible, never twice at a time, and at once when it
 * becomes visible. `ask` promises whether there was an answer; `wait` tells how long to wait after
 * so many times without one. Answers with a function that asks at once.
 */
export function follow(ask, wait, page = document) {
  let [timer, failures, isAsking, isWanted] = [null, 0, false, false];
  const next = () => {
    clearTimeout(timer);
    timer = page.visibilityState === "visible" ? setTimeout(now, wait(failures)) : null;
  };
  const now = async () => {
    isWanted = isAsking;
    if (isAsking) return;
    isAsking = true;
    clearTimeout(timer);
    try {
      failures = (await ask()) ? 0 : failures + 1;
    } finally {
      isAsking = false;
      if (isWanted) now();
      else next();
    }
  };
  page.addEventListener("visibilitychange", () => {
    if (page.visibilityState === "visible") now();
    else clearTimeout(timer);
  });
  next();
  return now;
}
