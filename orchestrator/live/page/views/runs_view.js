// All runs that the server knows, newest first; the cells of a sweep are behind their sweep.

import { el, refill, setHidden, setText } from "../dom.js";
import { askJson } from "../feed/api.js";
import { ago, many, text } from "../model/words.js";
import { poll } from "./polling.js";
import { shell, sign } from "./shell.js";

export async function showRuns(root) {
  document.title = "Runs – Rove";
  const about = await askJson("api/about").catch(() => ({}));
  const list = el("div", { class: "cards", "data-testid": "runs" });
  const trouble = el("p", { class: "banner", hidden: true });
  const links = [["Runs", "."], ...(about.fleet ? [["Fleet", "?fleet"]] : [])];
  root.replaceChildren(shell("Runs", "Runs", links), trouble, el("main", { class: "list" }, list));
  await poll("api/runs", 3000, (answer, failed) => {
    setHidden(trouble, !failed);
    setText(trouble, failed);
    if (!answer) return;
    const runs = (Array.isArray(answer) ? answer : (answer.runs ?? [])).filter((run) => !run.sweep);
    refill(list, JSON.stringify(runs), () => (runs.length > 0 ? runs.map(card) : el("p", { class: "empty" }, "No run yet. Start one with ", el("code", { text: "rove run experiments/quickstart.yaml" }), " and it appears here.")));
  });
}

function card(run) {
  const sweep = Array.isArray(run.members);
  const address = `?${sweep ? "sweep" : "run"}=${encodeURIComponent(run.id)}`;
  const started = Date.parse(run.started);
  return el("a", { class: "card", href: address },
    el("strong", { text: text(run.experiment, 100) }),
    sign(run.verdict ?? run.state),
    el("span", { class: "soft", text: text(run.id, 120) }),
    el("span", { class: "soft", text: Number.isFinite(started) ? `started ${ago((Date.now() - started) / 1000)}` : "" }),
    sweep ? el("span", { class: "soft", text: `sweep of ${many(run.members.length, "run")}` }) : null);
}
