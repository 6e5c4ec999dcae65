// What each replica of a query does: how much it puts out, how it was in the last minute, what waits at it.

import { el, setClass, setText } from "../dom.js";
import { between, Fields } from "../model/columns.js";
import { activeHops } from "../model/paths.js";
import { brief, number } from "../model/words.js";
import { shapeIcon } from "../shapes.js";
import { operatorStyle } from "../theme.js";
import { Chart } from "./chart.js";

const MINUTE = 60;
const MOST = 60; // rows; a query with more replicas than that shows the first

export class ReplicaTable {
  constructor(run, app) {
    this.run = run;
    this.app = app;
    const order = [...app.view.replicas].sort((a, b) => (app.view.order.get(a.operator) ?? 0) - (app.view.order.get(b.operator) ?? 0));
    this.rows = order.slice(0, MOST).map((replica) => this.row(replica));
    const headings = [["replica"], ["", "soft"], ["work/s", "number"], ["last minute", "wide"], ["waiting", "wide"]];
    this.element = el("div", { class: "scroll" }, el("table", { class: "replicas", "data-testid": "replicas" },
      el("thead", {}, el("tr", {}, headings.map(([name, kind]) => el("th", { text: name, class: kind ?? "" })))),
      el("tbody", {}, this.rows.map((row) => row.element))));
  }

  row(replica) {
    const { run, app } = this;
    const style = operatorStyle(app.view.order.get(replica.operator) ?? 0);
    const sink = app.view.role.get(replica.operator) === "sink";
    const field = sink ? "in" : "out";
    const rate = el("td", { class: "number", text: "–" });
    const bar = el("span", { class: "bar" });
    const count = el("span", { text: "–" });
    const spark = new Chart({ label: `Work of ${replica.id} in the last minute`, lines: [{ label: field, variable: style.variable, fill: true }], height: 22, words: brief, small: true });
    const fields = new Fields(run.history.series(app.name, "rate", replica.id, true), [field], 0);
    const where = el("td", { class: "soft", text: replica.node });
    const element = el("tr", { "data-replica": replica.id },
      el("th", { scope: "row" }, shapeIcon(style.shape, style.variable), replica.id), where, rate,
      el("td", { class: "wide" }, spark.place),
      el("td", { class: "wide" }, el("span", { class: "queue" }, bar, count)));
    return { replica, field, rate, bar, count, spark, fields, element, where };
  }

  renew(drawCharts) {
    const { run, app } = this;
    const now = run.clock.t;
    const busy = new Set(activeHops(run.history, app.name, app.view, run.t).flatMap((hop) => [hop.from, hop.to]));
    const last = Math.floor(run.measuredUntil) + 0.999; // the last second that was measured is said until then
    const asked = Math.min(run.t, last);
    for (const row of this.rows) {
      const series = row.fields.series;
      const value = series.at(asked);
      const old = value && Math.min(now, last) - series.since(asked) > 3;
      setText(row.rate, value ? brief(old ? 0 : value[row.field]) : "–");
      const queue = run.history.at(app.name, "queue", row.replica.id, run.t);
      const waits = (number(queue?.in) ?? 0) + (number(queue?.out) ?? 0);
      setText(row.count, queue ? brief(waits) : "–");
      row.bar.style.width = `${Math.min(100, waits === 0 ? 0 : 4 + 24 * Math.log10(1 + waits))}%`;
      const state = run.nodeState(row.replica.node);
      setText(row.where, state.well ? row.replica.node : `${row.replica.node} ${state.state}`);
      setClass(row.where, "bad", !state.well);
      setClass(row.element, "active", busy.has(row.replica.id));
      if (drawCharts) row.spark.set(between(row.fields.renew(), now - MINUTE, now), now - MINUTE, now);
    }
  }

  close() {
    for (const row of this.rows) row.spark.close();
  }
}
