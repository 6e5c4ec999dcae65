// A sweep: one tile for each cell, with its factors, its state, and its results as they come.

import { el, refill, setHidden, setText } from "../dom.js";
import { brief, text } from "../model/words.js";
import { poll } from "./polling.js";
import { factorWords, shell, sign } from "./shell.js";

const SHOWN = 4; // results in a tile

export async function showSweep(root, id) {
  document.title = `Sweep ${text(id, 100)} – Rove`;
  const counts = el("p", { class: "counts", "data-testid": "counts" });
  const bar = el("div", { class: "progress", "aria-hidden": "true" });
  const grid = el("div", { class: "grid", "data-testid": "cells" });
  const choice = el("div", { class: "choice" });
  const trouble = el("p", { class: "banner", hidden: true });
  const wanted = new Set();
  root.replaceChildren(shell(`Sweep ${text(id, 100)}`, "", [["Runs", "."]]), trouble, el("main", { class: "list" }, counts, bar, choice, grid));
  let last = null;
  const show = () => {
    const cells = last.cells ?? [];
    const names = [...new Set(cells.flatMap((cell) => Object.keys(cell.results ?? {})))];
    if (wanted.size === 0) for (const name of preferred(names)) wanted.add(name);
    refill(choice, JSON.stringify([names, [...wanted]]), () => (names.length > 0 ? resultChoice(names, wanted, show) : null));
    setText(counts, Object.entries(last.counts ?? {}).map(([state, count]) => `${brief(count)} ${state}`).join(", ") + ` of ${cells.length} cells`);
    refill(bar, JSON.stringify(last.counts), () => progress(cells));
    refill(grid, JSON.stringify([cells, [...wanted]]), () => cells.map((cell) => tile(cell, wanted)));
  };
  await poll(`api/sweeps/${encodeURIComponent(id)}`, 2000, (answer, failed) => {
    setHidden(trouble, !failed);
    setText(trouble, failed);
    if (!answer) return;
    last = answer;
    show();
  });
}

/** Goodput, loss and latency first: what people look for. */
function preferred(names) {
  const liked = [/goodput/, /offered/, /loss/, /latency.*p95|p95.*latency/, /switches/];
  const found = liked.map((pattern) => names.find((name) => pattern.test(name))).filter(Boolean);
  return [...new Set([...found, ...names])].slice(0, SHOWN);
}

function resultChoice(names, wanted, show) {
  return el("details", {}, el("summary", { text: "Choose results ▾" }),
    names.slice(0, 60).map((name) => {
      const box = el("input", { type: "checkbox", onchange: () => {
        if (box.checked) wanted.add(name);
        else wanted.delete(name);
        show();
      } });
      box.checked = wanted.has(name);
      return el("label", {}, box, ` ${text(name, 60)}`);
    }));
}

function progress(cells) {
  const parts = ["valid", "invalid", "failed", "running", "waiting"];
  const state = (cell) => cell.verdict ?? cell.state;
  return [...cells].sort((a, b) => parts.indexOf(state(a)) - parts.indexOf(state(b))).map((cell) => el("span", { class: `part ${parts.includes(state(cell)) ? state(cell) : "other"}` }));
}

function tile(cell, wanted) {
  const started = cell.state !== "waiting";
  const results = [...wanted].filter((name) => cell.results?.[name] !== undefined);
  const inside = [
    el("strong", { text: factorWords(cell.factors) || text(cell.run, 100) }),
    el("span", { class: "row" }, sign(cell.verdict ?? cell.state), cell.state === "running" && cell.phase ? el("span", { class: "soft", text: text(cell.phase, 30) }) : null),
    results.length > 0 ? el("dl", {}, results.map((name) => [el("dt", { text: name }), el("dd", { text: brief(cell.results[name]) })])) : null,
    ...(cell.reasons ?? []).slice(0, 2).map((reason) => el("small", { class: "bad", text: text(reason, 200) })),
  ];
  return started ? el("a", { class: "card cell", href: `?run=${encodeURIComponent(cell.run)}` }, inside) : el("div", { class: "card cell waiting" }, inside);
}
