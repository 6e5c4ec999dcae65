// Real nodes before a run: whether each can be reached and is enrolled, its clock, load, battery, radio.

import { el, refill, setHidden, setText } from "../dom.js";
import { ago, brief, bytes, fixed, many, number, span, text } from "../model/words.js";
import { poll } from "./polling.js";
import { shell, sign } from "./shell.js";

export async function showFleet(root) {
  document.title = "Fleet – Rove";
  const summary = el("p", { class: "counts", "data-testid": "fleet-summary" });
  const grid = el("div", { class: "grid", "data-testid": "fleet" });
  const trouble = el("p", { class: "banner", hidden: true });
  root.replaceChildren(shell("Fleet", "Fleet", [["Runs", "."], ["Fleet", "?fleet"]]), trouble, el("main", { class: "list" }, summary, grid));
  await poll("api/fleet", 2000, (answer, failed) => {
    setHidden(trouble, !failed);
    setText(trouble, failed);
    if (!answer) return;
    const nodes = Array.isArray(answer.nodes) ? answer.nodes : [];
    const ready = nodes.filter((node) => node.state === "ok").length;
    const asked = number(answer.asked_ago_s) === null ? "asking them now" : `asked ${ago(answer.asked_ago_s)}`;
    setText(summary, `${text(answer.topology, 100)}: ${ready} of ${many(nodes.length, "node")} ready; ${asked}`);
    refill(grid, JSON.stringify(nodes), () => [...nodes].sort((a, b) => Number(a.state === "ok") - Number(b.state === "ok")).map(tile));
  });
}

function tile(node) {
  const { clock, memory, disk, battery, radio } = node;
  const facts = [
    ["reachable", yes(node.reachable)],
    ["enrolled", yes(node.enrolled)],
    ["clock", clock ? `${fixed(clock.offset_ms, 1)} ms off, ± ${fixed(clock.uncertainty_ms, 1)} ms` : null],
    ["load", number(node.load) === null ? null : `${fixed(node.load, 2)} on ${many(node.cores, "core")}${number(node.celsius) === null ? "" : `, ${fixed(node.celsius, 0)} °C`}`],
    ["memory", memory ? `${bytes(memory.free_bytes)} of ${bytes(memory.bytes)} free` : null],
    ["disk", disk ? `${bytes(disk.free_bytes)} free` : null],
    ["battery", battery ? `${brief(battery.percent)} %${battery.charging ? ", charging" : ""}` : null],
    ["radio", radio ? radioWords(radio) : null],
    ["up", number(node.uptime_s) === null ? null : span(node.uptime_s)],
    ["address", [text(node.address, 80), text(node.manet, 80)].filter(Boolean).join(", ")],
  ];
  return el("article", { class: "card cell", "data-node": text(node.node, 80) },
    el("strong", { text: text(node.node, 80) }),
    sign(node.state),
    node.why ? el("small", { class: "bad", text: text(node.why, 300) }) : null,
    el("dl", {}, facts.filter(([, value]) => value).map(([name, value]) => [el("dt", { text: name }), el("dd", { text: value })])));
}

function yes(value) {
  return value === true ? "yes" : value === false ? "no" : null;
}

function radioWords(radio) {
  if (!radio.there) return `${text(radio.interface, 40)} is not there`;
  const signal = number(radio.signal_dbm) === null ? "" : `, ${fixed(radio.signal_dbm, 0)} dBm`;
  return `${text(radio.interface, 40)} ${text(radio.state, 20)}${radio.wireless ? "" : ", not wireless"}${signal}`;
}
