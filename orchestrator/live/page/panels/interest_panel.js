// Situations around moving objects: each query with its results and where its interest is, each broker with what it keeps.

import { el, setText } from "../dom.js";
import { brief, fixed, span, text } from "../model/words.js";
import { cells, table } from "./detect_panel.js";

const MOST = 100;

export class InterestPanel {
  constructor(run, app) {
    this.run = run;
    this.app = app;
    this.queries = app.view.situations.slice(0, MOST).map((query) => this.query(query));
    this.brokers = app.view.brokers.slice(0, MOST).map((node) => this.broker(node));
    this.element = el("section", { class: "panel flows", "aria-label": `Situations around moving objects ${app.name}` },
      el("h2", {}, app.name, app.kind === app.name ? el("span", { class: "soft", text: "situations around moving objects" }) : el("span", { class: "soft", text: app.kind })),
      table("situations", ["query", "#situations", "#last delay", "#worst", "#switches", "interest"], this.queries),
      table("brokers", ["broker", "#all arrived up to", "#keeps", "#waiting", "#streamed"], this.brokers));
  }

  query(query) {
    const cell = cells("count", "delay", "worst", "epoch");
    cell.place = el("td", { class: "soft", text: "–" });
    const series = (channel) => this.run.history.series(this.app.name, channel, query.name, true);
    const element = el("tr", {},
      el("th", { scope: "row", title: text(query.text), text: `${query.name} around ${text(query.focal, 60)}` }),
      cell.count, cell.delay, cell.worst, cell.epoch, cell.place);
    return { found: series("situation"), region: series("region"), cell, element };
  }

  broker(node) {
    const cell = cells("arrived", "stored", "waiting", "streamed");
    const element = el("tr", {}, el("th", { scope: "row", text: text(node, 60) }), cell.arrived, cell.stored, cell.waiting, cell.streamed);
    return { series: this.run.history.series(this.app.name, "served", node, true), cell, element };
  }

  renew() {
    const { run } = this;
    for (const { found, region, cell } of this.queries) {
      const value = found.at(run.t);
      const at = region.at(run.t);
      setText(cell.count, brief(value?.count ?? 0));
      setText(cell.delay, span(value?.delay));
      setText(cell.worst, span(value?.worst));
      setText(cell.epoch, brief(at?.epoch));
      setText(cell.place, typeof at?.x === "number" ? `(${fixed(at.x, 0)}, ${fixed(at.y, 0)}) ± ${fixed(at.radius, 0)} m` : "–");
    }
    for (const { series, cell } of this.brokers) {
      const value = series.at(run.t);
      setText(cell.arrived, value?.arrived === null ? "the end" : span(value?.arrived));
      for (const name of ["stored", "waiting", "streamed"]) setText(cell[name], brief(value?.[name]));
    }
  }

  close() {}
}
