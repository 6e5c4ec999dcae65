// Says in plain words what was detected so far, how late, and what the plan can no longer rely on.

import { el, refill } from "../dom.js";
import { ago, many, number, span } from "../model/words.js";
import { departuresAt } from "./detect_panel.js";

export class DetectSentence {
  constructor(run, app) {
    this.run = run;
    this.app = app;
    this.element = el("p", { class: "sentence", "data-testid": "detect-sentence" });
  }

  renew() {
    const { run, app } = this;
    const parts = [["name", `${app.name}: `]];
    for (const pattern of app.view.patterns.slice(0, 5)) {
      const series = run.history.series(app.name, "detection", pattern.name, true);
      const value = series.at(run.t);
      const count = number(value?.count) ?? 0;
      if (count === 0) {
        parts.push(["", `${pattern.name} was not detected yet. `]);
        continue;
      }
      const last = `last ${ago(run.age(series.since(run.t)))}, ${span(value.delay)} after its last event (${span(pattern.promised)} promised)`;
      parts.push(["", `${pattern.name} was detected ${many(count, "time")}, ${last}. `]);
      if ((number(value.late) ?? 0) > 0) parts.push(["bad", `${many(value.late, "detection")} came later than promised. `]);
    }
    const left = departuresAt(run, app);
    if (left.length > 0) parts.push(["bad", `The plan's assumptions no longer hold: ${left.slice(0, 3).join("; ")}.`]);
    refill(this.element, JSON.stringify(parts), () => parts.map(([kind, words]) => el("span", { class: kind, text: words })));
  }
}
