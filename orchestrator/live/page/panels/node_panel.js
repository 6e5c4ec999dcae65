// All nodes as a list: who is not well comes first. A press shows the node on the map.

import { el, refill } from "../dom.js";
import { span, text } from "../model/words.js";

export class NodePanel {
  constructor(run, choose) {
    this.run = run;
    this.choose = choose;
    this.list = el("ul", { class: "nodes", "data-testid": "nodes" });
    this.element = el("section", { class: "panel", "aria-label": "Nodes" }, el("h2", { text: "Nodes" }), this.list);
  }

  renew() {
    const { run } = this;
    const states = run.nodes.map((name) => ({ name, ...run.nodeState(name) }));
    states.sort((a, b) => Number(a.well) - Number(b.well));
    const age = (each) => (each.well ? "" : span(run.age(each.since)));
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.node : null;
    const filled = refill(this.list, states.map((each) => `${each.name} ${each.state} ${age(each)}`).join("|"), () =>
      states.map((each) => {
        const hosted = (run.hosted.get(each.name) ?? []).map(({ replica }) => replica.id).join(", ");
        const words = each.well ? (["unknown", "ok"].includes(each.state) ? "" : each.state) : `${each.state} for ${age(each)}${each.why ? `: ${text(each.why, 120)}` : ""}`;
        return el("li", {}, el("button", { type: "button", class: each.well ? "" : "dead", "data-node": each.name, onclick: () => this.choose(each.name), "aria-label": `Show ${each.name} on the map. ${words} ${hosted}` },
          el("b", { text: each.name }), el("span", { text: words }), hosted ? el("span", { class: "soft", text: hosted }) : null));
      }));
    if (filled && focused) this.list.querySelector(`[data-node="${CSS.escape(focused)}"]`)?.focus();
  }
}
