// What the lists have in common: a header with the ways between them, and signs for states.

import { el } from "../dom.js";
import { text } from "../model/words.js";
import { themeButton } from "../theme.js";

const SIGNS = {
  valid: ["good", "✓"], done: ["good", "✓"], ok: ["good", "✓"], finished: ["good", "✓"],
  running: ["busy", "▶"], invalid: ["warn", "!"], interrupted: ["warn", "!"], waiting: ["none", "·"], planned: ["none", "·"],
  died: ["bad", "✕"], unreadable: ["warn", "!"], "not enrolled": ["warn", "!"], "other key": ["bad", "✕"], "login refused": ["bad", "✕"],
  failed: ["bad", "✕"], crashed: ["bad", "✕"], unreachable: ["bad", "✕"],
};

export function sign(state) {
  const words = text(state, 40) || "unknown";
  const [level, symbol] = SIGNS[words] ?? ["none", "·"];
  return el("span", { class: `state ${level}` }, el("span", { "aria-hidden": "true", text: `${symbol} ` }), words);
}

export function shell(title, here, links) {
  return el("header", { class: "top" },
    el("span", { class: "brand", text: "Rove" }), el("h1", { text: title }),
    el("nav", { class: "facts" }, links.map(([name, address]) => (name === here ? el("span", { "aria-current": "page", text: name }) : el("a", { href: address, text: name })))),
    themeButton());
}

/** Values that people chose, in a line: replicas 3, seed 1. */
export function factorWords(factors) {
  if (!factors || typeof factors !== "object") return "";
  return Object.entries(factors).map(factorText).join(", ");
}

/** topology.mobility.speed: 5 is "speed 5". */
export function factorText([name, value]) {
  const last = text(name, 100).split(".").at(-1);
  return `${text(last, 40)} ${text(typeof value === "object" ? JSON.stringify(value) : String(value), 60)}`;
}
