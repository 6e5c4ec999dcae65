// Detection of events: each pattern with its delays, each link with what it carries and what waits, stores, and departures.

import { el, refill, setClass, setText } from "../dom.js";
import { between, Fields } from "../model/columns.js";
import { brief, bytes, number, span, text } from "../model/words.js";
import { Chart } from "./chart.js";

const MOST = 100;

export class DetectPanel {
  constructor(run, app) {
    this.run = run;
    this.app = app;
    this.patterns = app.view.patterns.slice(0, MOST).map((each) => this.pattern(each));
    this.links = app.view.carriers.slice(0, MOST).map((each) => this.link(each));
    this.nodes = [...new Set(app.view.carriers.flatMap((each) => [each.from, each.to]))].slice(0, MOST).map((node) => this.node(node));
    this.departures = el("ul", { class: "departures", "data-testid": "departures" });
    this.element = el("section", { class: "panel detect flows", "aria-label": `Detection of events ${app.name}` },
      el("h2", {}, app.name, app.kind === app.name ? el("span", { class: "soft", text: "detection of events" }) : el("span", { class: "soft", text: app.kind })),
      this.departures,
      table("detections", ["pattern", "#found", "#late", "#last delay", "#worst", "#promised"], this.patterns),
      table("carriers", ["link", "carries", "#connected", "#sent", "#asked", "#waiting"], this.links),
      table("kept", ["node", "#to match", "#for requests", "#undecided", "#given up"], this.nodes));
  }

  pattern(pattern) {
    const cell = cells("found", "late", "last", "worst");
    const series = this.run.history.series(this.app.name, "detection", pattern.name, true);
    const lines = [{ label: "delay", variable: "delivered", fill: true }, { label: "promised", variable: "offered" }];
    const spark = new Chart({ label: `Delays of ${pattern.name}, and what was promised`, lines, height: 40, words: span, small: true });
    const element = [
      el("tr", {},
        el("th", { scope: "row", title: text(pattern.pattern), text: `${pattern.name} at ${text(pattern.sink, 60)}` }),
        cell.found, cell.late, cell.last, cell.worst, el("td", { class: "number soft", text: span(pattern.promised) })),
      el("tr", {}, el("td", { class: "wide", colspan: 6 }, spark.place)),
    ];
    return { pattern, series, spark, cell, element, fields: new Fields(series, ["delay"], undefined) };
  }

  link(link) {
    const cell = cells("connected", "instances", "requests", "waiting");
    const names = (list) => (Array.isArray(list) ? list.map((each) => text(each, 60)).join(", ") : "");
    const marks = [["push", names(link.pushed)], ["pull", names(link.pulled)]].filter(([, listed]) => listed);
    const element = el("tr", {},
      el("th", { scope: "row", text: `${link.from} → ${link.to}` }),
      el("td", {}, marks.map(([mark, listed]) => el("span", { class: `mark ${mark}` }, el("b", { text: mark }), ` ${listed} `))),
      cell.connected, cell.instances, cell.requests, cell.waiting);
    const series = (from, to) => this.run.history.series(this.app.name, "carried", `${from}>${to}`, true);
    return { up: series(link.from, link.to), down: series(link.to, link.from), cell, element };
  }

  node(node) {
    const cell = cells("instances", "matches", "undecided", "dropped");
    const element = el("tr", {}, el("th", { scope: "row", text: node }), cell.instances, cell.matches, cell.undecided, cell.dropped);
    return { node, series: this.run.history.series(this.app.name, "kept", node, true), cell, element };
  }

  renew(drawCharts) {
    const { run } = this;
    for (const { pattern, series, spark, cell, fields } of this.patterns) {
      const value = series.at(run.t);
      setText(cell.found, brief(value?.count ?? 0));
      setText(cell.late, brief(value?.late ?? 0));
      setText(cell.last, span(value?.delay));
      setText(cell.worst, span(value?.worst));
      setClass(cell.late, "bad", (number(value?.late) ?? 0) > 0);
      setClass(cell.worst, "bad", (number(value?.worst) ?? 0) > (number(pattern.promised) ?? Infinity));
      if (drawCharts) {
        const now = Math.max(1, run.clock.t);
        const [times, delays] = between(fields.renew(), 0, now);
        const all = [...times, now];
        spark.set([all, [...delays, number(value?.delay)], all.map(() => number(pattern.promised))], 0, now);
      }
    }
    for (const { up, down, cell, element } of this.links) {
      const value = up.at(run.t);
      const connected = value?.up === true;
      setText(cell.connected, value ? `${connected ? "yes" : "no"}, ${span(run.age(number(value.since) ?? 0))}` : "–");
      setText(cell.instances, brief(value?.instances));
      setText(cell.requests, brief(down.at(run.t)?.requests));
      setText(cell.waiting, value?.waiting ? bytes(value.waiting_bytes) : "–");
      setClass(element, "ended", !connected);
    }
    for (const { series, cell } of this.nodes) {
      const value = series.at(run.t);
      for (const name of ["instances", "matches", "undecided", "dropped"]) setText(cell[name], brief(value?.[name]));
      setClass(cell.dropped, "bad", (number(value?.dropped) ?? 0) > 0);
    }
    const left = departuresAt(run, this.app);
    refill(this.departures, JSON.stringify(left), () => left.map((each) => el("li", { class: "warn", text: `No longer as planned: ${each}` })));
  }

  close() {
    for (const row of this.patterns) row.spark.close();
  }
}

/** What no longer is as the plan assumed. */
export function departuresAt(run, app) {
  return [...run.history.keys(app.name, "assumption").keys()].map((key) => run.history.at(app.name, "assumption", key, run.t)).filter(Boolean).map((value) => text(value.text, 200));
}

export function cells(...names) {
  return Object.fromEntries(names.map((name) => [name, el("td", { class: "number", text: "–" })]));
}

/** `headings`: with # before those of numbers. */
export function table(testid, headings, rows) {
  const head = headings.map((name) => el("th", { text: name.replace("#", ""), class: name.startsWith("#") ? "number" : "" }));
  return el("div", { class: "scroll" }, el("table", { "data-testid": testid }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows.map((row) => row.element))));
}
