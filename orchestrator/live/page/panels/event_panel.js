// What happened: phases, faults, warnings, errors, newest first. Each line leads to its moment.

import { el, refill } from "../dom.js";
import { moment, text } from "../model/words.js";

const MOST = 60;
const SIGNS = { warn: "!", error: "✕" };

export class EventPanel {
  constructor(run, doubts) {
    this.run = run;
    this.list = el("ol", { class: "events", "data-testid": "events" });
    this.element = el("section", { class: "panel", "aria-label": "Events" }, el("h2", { text: "Events and doubts" }), doubts, this.list);
  }

  renew() {
    const { run } = this;
    const { times, values } = run.marks.events;
    const last = run.marks.events.index(run.t);
    refill(this.list, `${last} ${times[last] ?? ""}`, () => {
      const rows = [];
      for (let at = last; at >= 0 && rows.length < MOST; at -= 1) if (values[at]) rows.push(this.row(times[at], values[at]));
      return rows.length > 0 ? rows : el("li", { class: "soft", text: "none yet" });
    });
  }

  row(t, value) {
    const level = ["warn", "error"].includes(value.level) ? value.level : "info";
    const sign = value.kind === "fault" ? "⚡" : (SIGNS[level] ?? "·");
    return el("li", {}, el("button", { type: "button", class: `event ${level}`, onclick: () => this.run.clock.seek(t), "aria-label": `Go to ${moment(t)}: ${text(value.text)}` },
      el("time", { text: moment(t) }), el("span", {}, el("span", { class: "sign", text: `${sign} ` }), text(value.text))));
  }
}
