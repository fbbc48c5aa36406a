// The login, shown when turnkeep asks for one.

import { el, fill, withCode } from "./dom.js";

/** The event of a request that needs a login. */
export const LOCKED = "turnkeep:locked";

/** What to say to an answer that let nobody in: its status, 0 for none, and its `Retry-After`. */
export function refusal(status, retryAfter) {
  if (status === 401) return "Wrong password or token.";
  if (status === 429) {
    const minutes = Math.ceil(Number(retryAfter) / 60);
    if (!(minutes > 1)) return "Too many wrong passwords. Try again in a minute.";
    return `Too many wrong passwords. Try again in ${minutes} minutes.`;
  }
  if (status === 503) return "Others are logging in. Try again in a few seconds.";
  if (status === 403) return "turnkeep does not know this address as its own. Behind a proxy that speaks HTTPS, name the proxy as `trusted_proxy`.";
  if (status === 0) return "turnkeep does not answer. Is it still running?";
  return `turnkeep answered ${status}.`;
}

/** What is asked for, when `status` is what `/auth/status` says. */
export function label(status) {
  return status?.passwordRequired === false ? "API token" : "Password or API token";
}

async function post(path, body) {
  try {
    return await fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify(body ?? {}),
    });
  } catch {
    return null;
  }
}

async function askStatus() {
  try {
    const response = await fetch("/auth/status", { cache: "no-store" });
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

/** Shows the form, once; the page starts anew when it has let somebody in. */
function ask(status) {
  if (document.getElementById("login")) return;
  const trouble = el("p", { id: "login-trouble", class: "trouble", role: "alert" });
  const input = el("input", {
    id: "login-password",
    type: "password",
    name: "password",
    required: true,
    autofocus: true,
    autocomplete: "current-password",
    autocapitalize: "none",
    spellcheck: "false",
    maxlength: "2048",
    "aria-describedby": "login-trouble",
  });
  const button = el("button", { class: "button enter", type: "submit" }, "Log in");
  const form = el(
    "form",
    { method: "dialog" },
    el("p", { class: "brand" }, el("img", { src: "/assets/icon.svg", alt: "", width: "22", height: "22" }), "turnkeep"),
    // Password managers keep a password under a name.
    el("input", { class: "hidden", type: "text", name: "username", value: "turnkeep", autocomplete: "username", readonly: true, tabindex: "-1", "aria-hidden": "true" }),
    el("label", { for: "login-password" }, label(status)),
    input,
    trouble,
    button,
  );
  const dialog = el("dialog", { id: "login", class: "login", "aria-label": "Log in" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    fill(trouble);
    const response = await post("/auth/login", { password: input.value });
    if (response?.ok) {
      location.reload();
      return;
    }
    button.disabled = false;
    input.setAttribute("aria-invalid", "true");
    fill(trouble, withCode(refusal(response?.status ?? 0, response?.headers.get("retry-after"))));
    input.select();
    input.focus();
  });
  // There is nothing behind it to go back to.
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  document.body.append(dialog);
  dialog.showModal();
  input.focus();
}

function offerLogout(brand) {
  const button = el("button", { class: "button text logout", type: "button" }, "Log out");
  button.addEventListener("click", async () => {
    button.disabled = true;
    await post("/auth/logout");
    location.reload();
  });
  brand.append(button);
}

/**
 * Asks for a login when one is needed, now or later, and offers to end the one there is. `conceal`
 * takes what only those who are logged in may read off the page.
 */
export async function start(brand, conceal) {
  let status = null;
  const lock = () => {
    conceal();
    ask(status);
  };
  window.addEventListener(LOCKED, lock);
  status = await askStatus();
  if (status?.via === "login") offerLogout(brand);
  if (status?.authenticated === false) lock();
}
