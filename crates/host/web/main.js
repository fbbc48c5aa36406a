// Which session is read stands in the address, so that it can be kept, shared and gone back to.

import { Activity } from "./activity.js";
import * as login from "./login.js";
import { listen, paced } from "./live.js";
import * as sessions from "./sessions.js";
import * as transcript from "./transcript.js";

const SEARCH_PAUSE = 250;
/** How long to wait at least between two looks at the list, in milliseconds. */
const LIST_PACE = 3000;

function sessionInAddress() {
  const match = /^#\/session\/([^/]+)$/.exec(location.hash);
  if (!match) return null;
  try {
    return decodeURIComponent(match[1]);
  } catch {
    return null;
  }
}

function show() {
  const id = sessionInAddress();
  document.body.dataset.view = id === null ? "list" : "session";
  sessions.select(id);
  transcript.open(id);
}

const query = document.getElementById("query");
let pause;
query.addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(() => sessions.search(query.value), SEARCH_PAUSE);
});
document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(pause);
  sessions.search(query.value);
});

document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    query.focus();
  } else if (event.key === "Escape" && event.target === query) {
    query.value = "";
    sessions.search("");
  }
});

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("transcript-body").focus();
});

login.start(document.querySelector(".sessions-head .brand"), () => {
  transcript.open(null);
  sessions.clear();
});
const renewList = paced(sessions.refresh, LIST_PACE);
const activity = new Activity();
const isLive = listen((session, event) => {
  if (session === null) activity.forget();
  if (session === null || activity.take(event)) showActivity(session);
  renewList();
  transcript.heard(session);
});
transcript.tellLive(isLive, activity, showActivity);
sessions.tellActivity(activity);

/** Shows what a session does, or, without one, what all of them do. */
function showActivity(session) {
  sessions.activityChanged();
  transcript.activityChanged(session);
}

window.addEventListener("hashchange", show);
sessions.search("");
show();
