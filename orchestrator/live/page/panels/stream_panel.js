// One query: where its stream goes, how much arrives and how late, what each replica does, the last switches.

import { el, refill, setClass, setText } from "../dom.js";
import { Fields, Throughput } from "../model/columns.js";
import { activeHops, mainPaths } from "../model/paths.js";
import { ago, brief, delay, moment, number, percent, text } from "../model/words.js";
import { shapeIcon } from "../shapes.js";
import { operatorStyle } from "../theme.js";
import { Chart, chartKey } from "./chart.js";
import { ReplicaTable } from "./replica_table.js";

const WINDOW = 5; // seconds over which rates are taken
const LEAST_SETTLED = 10; // tuples whose fate is known, or
const LEAST_S = 10; // seconds, before a loss is shown
const RATES = [
  { label: "offered", variable: "offered", dash: [5, 4] },
  { label: "delivered", variable: "delivered", fill: true },
];
const LATENCIES = [
  { label: "p50", variable: "p50" },
  { label: "p95", variable: "p95", dash: [8, 3] },
  { label: "p99", variable: "p99", dash: [2, 3] },
];

export class StreamPanel {
  constructor(run, app) {
    this.run = run;
    this.app = app;
    const having = (role) => app.view.replicas.filter((each) => app.view.role.get(each.operator) === role);
    this.sinks = having("sink");
    const groups = [{ keys: having("source").map((each) => each.id), field: "in" }, { keys: this.sinks.map((each) => each.id), field: "out" }];
    this.throughput = new Throughput(run.history, app.name, groups, WINDOW);
    // Of several sinks, the key "" has all together.
    const key = this.sinks.length === 1 ? this.sinks[0].id : "";
    this.latency = new Fields(run.history.series(app.name, "latency", key, true), ["p50", "p95", "p99"], null);
    const go = (t) => run.clock.seek(t);
    this.rates = new Chart({ label: "Tuples offered and delivered a second", lines: RATES, words: brief, go, testid: "rate-chart" });
    this.delays = new Chart({ label: this.sinks.length > 1 ? "Latency at all sinks together" : "Latency at the sink", lines: LATENCIES, words: (value) => delay(value), go, testid: "latency-chart" });
    this.tiles = ["goodput", "offered", "lost", "latency p95"].map((name) => {
      const value = el("strong", { text: "–" });
      const note = el("small");
      return { name, value, note, element: el("div", { class: "tile", "data-testid": `tile-${name.split(" ")[0]}` }, el("span", { text: name }), value, note) };
    });
    this.drops = el("p", { class: "soft drops", "data-testid": "drops" });
    this.chips = el("div", { class: "paths", "data-testid": "paths" });
    this.switches = el("ol", { class: "switches", "data-testid": "switches" });
    this.table = new ReplicaTable(run, app);
    this.element = el("section", { class: "panel stream", "aria-label": `Stream ${app.name}` },
      el("h2", {}, app.name, app.kind === app.name ? null : el("span", { class: "soft", text: app.kind })),
      this.chips,
      el("div", { class: "tiles" }, this.tiles.map((tile) => tile.element)), this.drops,
      el("h3", {}, "Latency", chartKey(LATENCIES)), this.delays.place,
      el("h3", {}, "Tuples a second", chartKey(RATES)), this.rates.place,
      el("h3", { text: "Replicas" }), this.table.element,
      el("h3", { text: "Switches, newest first" }), this.switches);
  }

  renew(drawCharts) {
    this.renewTiles();
    this.renewPaths();
    this.renewSwitches();
    this.table.renew(drawCharts);
    if (drawCharts) {
      const { edge } = this.run.clock;
      this.rates.set(this.throughput.renew(), 0, edge);
      this.delays.set(this.latency.renew(), 0, edge);
    }
    for (const chart of [this.rates, this.delays]) chart.setMark(this.run.clock.t);
  }

  renewTiles() {
    const { run, app } = this;
    const totals = run.history.series(app.name, "total", "");
    const total = totals.at(run.t);
    const [offered, delivered] = this.throughput.at(run.t, run.measuredUntil);
    const latency = this.latency.series;
    const last = latency.at(run.t);
    const [goodput, load, lost, late] = this.tiles;
    setText(goodput.value, delivered === null ? "–" : `${brief(Number(delivered.toFixed(1)))}/s`);
    setText(goodput.note, total ? `${brief(total.delivered)} delivered` : "nothing yet");
    setText(load.value, offered === null ? "–" : `${brief(Number(offered.toFixed(1)))}/s`);
    setText(load.note, total ? `${brief(total.offered)} offered` : "");
    setText(lost.value, this.isEarly(total, totals) ? "–" : percent(total?.loss));
    setText(lost.note, total ? `${brief(total.lost)} lost, ${brief(total.waiting)} waiting` : "");
    setText(this.drops, dropped(total));
    const stale = last && run.age(latency.since(run.t)) > WINDOW;
    setText(late.value, last ? delay(last.p95) : "–");
    setText(late.note, last ? (stale ? ago(run.age(latency.since(run.t))) : this.worstSink() ?? `median ${delay(last.p50)}`) : "");
    setClass(late.element, "stale", stale);
  }

  /** Whether too little is known for a loss: drops are known at once, deliveries only when they have happened. */
  isEarly(total, totals) {
    const { run } = this;
    const phase = run.marks.phase(run.t);
    if (!phase || !["warm-up", "measure"].includes(phase.name) || phase.outcome) return false;
    const settled = (number(total?.delivered) ?? 0) + (number(total?.lost) ?? 0);
    const begun = phase.name === "measure" ? phase.from : (totals.times[0] ?? 0);
    return settled < LEAST_SETTLED && run.age(begun) < LEAST_S;
  }

  /** Of several sinks, the one with the largest latency in the last seconds, in words; null if there is one. */
  worstSink() {
    const { run, app } = this;
    if (this.sinks.length < 2) return null;
    let worst = null;
    for (const { id } of this.sinks) {
      const series = run.history.series(app.name, "latency", id);
      const p95 = number(series.at(run.t)?.p95);
      if (p95 === null || run.age(series.since(run.t)) > WINDOW) continue;
      if (p95 > (worst?.p95 ?? -1)) worst = { id, p95 };
    }
    return worst ? `worst ${worst.id}: ${delay(worst.p95)}` : null;
  }

  renewPaths() {
    const { run, app } = this;
    const paths = mainPaths(run.history, app.name, app.view, run.t);
    const signature = paths.map((path) => [path.steps.map((each) => `${each.id}${run.nodeState(each.node).well}`), path.stopped?.downstream]);
    refill(this.chips, JSON.stringify(signature), () => paths.map((path) => this.chipRow(path)));
  }

  chipRow(path) {
    const { run, app } = this;
    const parts = path.steps.flatMap((each, at) => {
      const style = operatorStyle(app.view.order.get(each.operator) ?? 0);
      const well = run.nodeState(each.node).well;
      const chip = el("span", { class: well ? "chip" : "chip dead" }, shapeIcon(style.shape, style.variable), el("b", { text: each.id }), ` @${each.node}`);
      return at === 0 ? [chip] : [el("span", { class: "arrow", text: "→" }), chip];
    });
    if (path.stopped) parts.push(el("span", { class: "arrow", text: "→" }), el("span", { class: "chip none", text: `${path.stopped.downstream}: no route` }));
    return el("p", { class: "chips" }, parts);
  }

  renewSwitches() {
    const { run, app } = this;
    const recent = run.marks.recentSwitches(app.name, run.t, 12);
    const passed = new Set(activeHops(run.history, app.name, app.view, run.t).map((hop) => hop.from));
    refill(this.switches, recent.map(({ t, value }) => `${t} ${value.from} ${passed.has(value.from)}`).join("|"), () =>
      recent.length === 0 ? el("li", { class: "soft", text: "none yet" }) : recent.map(({ t, value }) =>
        el("li", {}, el("button", { type: "button", class: passed.has(value.from) ? "event" : "event aside", onclick: () => run.clock.seek(t), "aria-label": `Go to the switch at ${moment(t)}` },
          el("time", { text: moment(t) }),
          el("span", {}, el("b", { text: `${value.from}: ${text(value.old, 60) || "no route"} → ${text(value.to, 60) || "no route"}` }), ` ${text(value.why)}`, passed.has(value.from) ? null : el("em", { text: " The stream does not pass it now." }))))));
  }

  close() {
    for (const chart of [this.rates, this.delays]) chart.close();
    this.table.close();
  }
}

function dropped(total) {
  if (!total) return "";
  const reasons = total.dropped && typeof total.dropped === "object" ? Object.entries(total.dropped) : [];
  const named = reasons.filter(([, count]) => number(count) > 0).sort((a, b) => b[1] - a[1]);
  if (named.length === 0) return "";
  return `Dropped: ${named.slice(0, 5).map(([reason, count]) => `${brief(count)} ${text(reason, 40).replaceAll("_", " ")}`).join(", ")}`;
}

