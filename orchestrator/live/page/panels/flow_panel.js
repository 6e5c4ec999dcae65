// Traffic between nodes: a table with a row for each flow, and a chart of what arrives.

import { el, setClass, setText } from "../dom.js";
import { between, Fields } from "../model/columns.js";
import { bits, delay, percent } from "../model/words.js";
import { Chart } from "./chart.js";

const MOST = 100;

export class FlowPanel {
  constructor(run, app) {
    this.run = run;
    this.app = app;
    this.rows = app.view.flows.slice(0, MOST).map((flow) => this.row(flow));
    const headings = [["flow"], ["from → to"], ["sent", "number"], ["received", "number"], ["last minute", "wide"], ["lost", "number"], ["delay", "number"], ["jitter", "number"]];
    this.element = el("section", { class: "panel flows", "aria-label": `Flows ${app.name}` },
      el("h2", {}, app.name, app.kind === app.name ? null : el("span", { class: "soft", text: app.kind })),
      el("div", { class: "scroll" }, el("table", { "data-testid": "flows" },
        el("thead", {}, el("tr", {}, headings.map(([name, kind]) => el("th", { text: name, class: kind ?? "" })))),
        el("tbody", {}, this.rows.map((row) => row.element)))));
  }

  row(flow) {
    const cells = ["sent", "received", "lost", "delay", "jitter"].map((name) => [name, el("td", { class: "number", text: "–" })]);
    const cell = Object.fromEntries(cells);
    const series = this.run.history.series(this.app.name, "flow", flow.name, true);
    const spark = new Chart({ label: `What ${flow.name} receives, last minute`, lines: [{ label: "sent", variable: "offered" }, { label: "received", variable: "delivered", fill: true }], height: 24, words: bits, small: true });
    const element = el("tr", {},
      el("th", { scope: "row", text: flow.name }),
      el("td", { class: "soft", title: flow.protocol ?? null, text: `${flow.from} → ${flow.to}` }),
      cell.sent, cell.received, el("td", { class: "wide" }, spark.place), cell.lost, cell.delay, cell.jitter);
    return { flow, series, spark, cell, element, fields: new Fields(series, ["sent", "received"], null) };
  }

  renew(drawCharts) {
    const { run } = this;
    const now = run.clock.t;
    for (const { series, spark, cell, element, fields } of this.rows) {
      const value = series.at(run.t);
      setText(cell.sent, bits(value?.sent));
      setText(cell.received, bits(value?.received));
      setText(cell.lost, percent(value?.lost));
      setText(cell.delay, delay(value?.delay));
      setText(cell.jitter, delay(value?.jitter));
      setClass(element, "ended", !value);
      if (drawCharts) spark.set(between(fields.renew(), now - 60, now), now - 60, now);
    }
  }

  close() {
    for (const row of this.rows) row.spark.close();
  }
}
