// Where the page begins: a run embedded in this file, or a view of what the server offers.
//
//   ?run=…     one run          ?sweep=…   the cells of a sweep
//   ?fleet     real nodes       (nothing)  all runs

import { el } from "./dom.js";
import { keepToken, Refused, takeToken } from "./feed/api.js";
import { hasReplay, ReplayFeed } from "./feed/replay_feed.js";
import { ServerFeed } from "./feed/server_feed.js";
import { startTheme } from "./theme.js";
import { showFleet } from "./views/fleet_view.js";
import { showRun } from "./views/run_view.js";
import { showRuns } from "./views/runs_view.js";
import { showSweep } from "./views/sweep_view.js";

async function show(root) {
  if (hasReplay()) return showRun(root, new ReplayFeed(), true);
  const asked = new URLSearchParams(location.search);
  if (asked.has("run")) return showRun(root, new ServerFeed(asked.get("run")), false);
  if (asked.has("sweep")) return showSweep(root, asked.get("sweep"));
  if (asked.has("fleet")) return showFleet(root);
  return showRuns(root);
}

function tokenForm(root, said) {
  const field = el("input", { type: "password", name: "token", autocomplete: "off", required: true, "aria-label": "Token" });
  const form = el("form", { class: "token", "data-testid": "token", onsubmit: (event) => {
    event.preventDefault();
    keepToken(field.value.trim());
    begin(root);
  } },
    el("h1", { text: "Rove asks for the token" }),
    el("p", { text: "The server printed it when it started." }),
    said ? el("p", { class: "bad", text: said }) : null,
    field, el("button", { type: "submit", text: "Open" }));
  root.replaceChildren(form);
  field.focus();
}

async function begin(root) {
  try {
    await show(root);
  } catch (error) {
    if (error instanceof Refused && error.status === 401) {
      tokenForm(root, error.message);
      return;
    }
    root.replaceChildren(el("div", { class: "failure", role: "alert" },
      el("h1", { text: "This cannot be shown" }), el("p", { text: String(error.message ?? error).slice(0, 400) }),
      el("p", {}, el("a", { href: location.pathname + location.search, text: "Try again" }))));
    document.documentElement.dataset.ready = "failed";
  }
}

startTheme();
takeToken();
begin(document.getElementById("root"));
