// Says in plain words how the traffic between nodes does.

import { el, refill } from "../dom.js";
import { flowState } from "../model/flows.js";
import { many, number, percent } from "../model/words.js";

export class FlowSentence {
  constructor(run, app) {
    this.run = run;
    this.app = app;
    this.element = el("p", { class: "sentence", "data-testid": "flow-sentence" });
  }

  renew() {
    const { run, app } = this;
    const count = { ended: 0, idle: 0, lost: 0, arrives: 0 };
    const lost = [];
    let worst = null;
    for (const flow of app.view.flows) {
      const value = run.history.at(app.name, "flow", flow.name, run.t);
      const state = flowState(value);
      count[state] += 1;
      if (state === "lost") lost.push(`${flow.name} (${flow.from} → ${flow.to})`);
      const ratio = number(value?.lost) ?? 0;
      if (state === "arrives" && ratio > (worst?.ratio ?? 0.01)) worst = { flow, ratio };
    }
    const others = ["idle", "ended"].filter((state) => count[state] > 0).map((state) => `, ${count[state]} ${state}`);
    const parts = [
      ["name", `${app.name}: `],
      ["", `${count.arrives} of ${many(app.view.flows.length, "flow")} arrive${others.join("")}.`],
    ];
    if (lost.length > 0) parts.push(["bad", ` Nothing arrives of ${lost.slice(0, 5).join(", ")}${lost.length > 5 ? ` and ${lost.length - 5} more` : ""}.`]);
    if (worst) parts.push(["", ` ${worst.flow.name} (${worst.flow.from} → ${worst.flow.to}) loses most: ${percent(worst.ratio)}.`]);
    refill(this.element, JSON.stringify(parts), () => parts.map(([kind, words]) => el("span", { class: kind, text: words })));
  }
}
