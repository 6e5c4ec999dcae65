// One row that says whether the run can be believed so far: phase, verdict, nodes, host, radio, clocks, records.
// Each item has a sign and words; colour only repeats them.

import { el, refill, setText } from "../dom.js";
import { brief, fixed, many, number, percent, span, text } from "../model/words.js";

const DEFAULT_LIMITS = { delay_ms: 1, waited: 0.5, late_ms: 20, late_ratio: 0.01, uncertainty_ms: 20 };
const SIGNS = { good: "✓", warn: "!", bad: "✕", none: "·" };

export class Health {
  constructor(run) {
    this.run = run;
    this.items = new Map();
    this.element = el("section", { class: "health", "aria-label": "Health of the run", "data-testid": "health" });
    for (const name of ["phase", "verdict", "nodes", "host", "radio", "clocks", "records"]) {
      const sign = el("span", { class: "sign", "aria-hidden": "true" });
      const words = el("span", { class: "words" });
      const element = el("div", { class: "item", "data-testid": `health-${name}` }, sign, el("span", { class: "name", text: name }), words);
      this.items.set(name, { sign, words, element });
      this.element.append(element);
    }
    this.doubts = el("ul", { class: "doubts", "data-testid": "doubts", hidden: true });
  }

  renew() {
    this.say("phase", this.phase());
    this.say("verdict", this.verdict());
    this.say("nodes", this.nodes());
    this.say("host", this.host());
    this.say("radio", this.radio());
    this.say("clocks", this.clocks());
    this.say("records", this.records());
  }

  say(name, [level, words]) {
    const item = this.items.get(name);
    item.element.hidden = words === null;
    if (words === null) return;
    if (item.element.dataset.level !== level) item.element.dataset.level = level;
    setText(item.sign, SIGNS[level]);
    setText(item.words, words);
  }

  phase() {
    const { run } = this;
    const phase = run.marks.phase(run.t);
    if (!phase) return ["none", "not started"];
    if (phase.outcome) return [phase.outcome === "failed" ? "bad" : "none", `${phase.name} ${phase.outcome}`];
    if (run.isDead) return ["bad", `${phase.name}, and died`];
    const long = { "warm-up": run.head.warmup_s, measure: run.head.duration_s }[phase.name];
    const passed = run.age(phase.from);
    return ["none", number(long) ? `${phase.name}, ${span(passed)} of ${span(long)}` : `${phase.name} for ${span(passed)}`];
  }

  verdict() {
    const { run } = this;
    const value = run.history.at("", "verdict", "", run.t);
    const last = run.lastWord;
    const known = typeof last?.verdict === "string" && !run.clock.goesOn; // it holds for every moment
    const final = typeof value?.verdict === "string";
    const reasons = (final ? value.reasons : value?.so_far) ?? [];
    const list = Array.isArray(reasons) ? reasons.slice(0, 20).map((each) => text(each)) : [];
    refill(this.doubts, JSON.stringify(list), () => list.map((each) => el("li", { text: each })));
    this.doubts.hidden = list.length === 0;
    if (run.died) return ["bad", "none: this run died"];
    if (final || known) {
      const { verdict, reasons: why } = final ? value : last;
      const because = Array.isArray(why) && why.length > 0 ? `: ${text(why[0], 90)}` : "";
      return [{ valid: "good", invalid: "warn" }[verdict] ?? "bad", `${text(verdict, 20)} (final)${because}`];
    }
    if (list.length === 0) return ["good", "valid so far"];
    return ["warn", `${many(list.length, "doubt")}: ${text(list[0], 90)}${list.length > 1 ? " …" : ""}`];
  }

  nodes() {
    const { run } = this;
    if (run.isDead) return ["warn", "not known: nobody watches them"];
    const wrong = [];
    let ended = 0;
    for (const node of run.nodes) {
      const state = run.nodeState(node);
      if (!state.well) wrong.push(`${node} ${state.state}`);
      else if (state.state === "ended") ended += 1;
    }
    if (wrong.length > 0) {
      const rest = wrong.length > 3 ? ` and ${wrong.length - 3} more` : "";
      return ["bad", `${run.nodes.length - wrong.length} of ${run.nodes.length} well; ${wrong.slice(0, 3).join(", ")}${rest}`];
    }
    if (ended === run.nodes.length && ended > 0) return ["none", `all ${ended} ended`];
    return ["good", `all ${run.nodes.length} well`];
  }

  /** What the verdict allows; older runs do not say it. */
  limit(name) {
    return number(this.run.head.limits?.[name]) ?? DEFAULT_LIMITS[name];
  }

  host() {
    const { run } = this;
    const machines = [];
    for (const [machine, series] of run.history.keys("", "host")) {
      const value = series.at(run.t);
      if (value) machines.push({ machine, delay: number(value.delay_ms), waited: number(value.waited), late: number(value.late_ms) });
    }
    if (machines.length === 0) return ["none", null];
    const [mostDelay, mostWaited, mostLate] = ["delay_ms", "waited", "late_ms"].map((name) => this.limit(name));
    const of = (value, limit) => (value ?? 0) / (limit || 1e-9);
    const load = (each) => Math.max(of(each.delay, mostDelay), of(each.waited, mostWaited), of(each.late, mostLate));
    const worst = machines.reduce((a, b) => (load(b) > load(a) ? b : a));
    const where = worst.machine ? ` (${worst.machine})` : "";
    const over = [];
    if ((worst.delay ?? 0) > mostDelay) over.push(`waits of ${brief(worst.delay)} ms (limit ${brief(mostDelay)} ms)`);
    if ((worst.waited ?? 0) > mostWaited) over.push(`waited ${percent(worst.waited)} (limit ${percent(mostWaited)})`);
    if ((worst.late ?? 0) > mostLate) over.push(`timers ${brief(worst.late)} ms late (limit ${brief(mostLate)} ms)`);
    if (over.length > 0) return ["warn", `busy${where}: ${over.join(", ")}`];
    const waits = worst.delay === null ? `waited ${percent(worst.waited)}` : `waits of ${brief(worst.delay)} ms`;
    return ["good", `keeps up${where}, ${waits}, timers ${brief(worst.late)} ms late`];
  }

  radio() {
    const value = this.run.history.at("", "radio", "", this.run.t);
    if (!value) return ["none", null];
    const late = number(value.late_ratio) ?? 0;
    const most = this.limit("late_ratio");
    const limit = late > most ? ` (limit ${percent(most)})` : "";
    return [late > most ? "warn" : "good", `${percent(late)} late${limit}, p99 ${brief(value.p99_us)} µs`];
  }

  clocks() {
    let off = null;
    let unsure = null;
    for (const [node, series] of this.run.history.keys("", "clock")) {
      const value = series.at(this.run.t);
      if (!value) continue;
      const [ahead, within] = [Math.abs(number(value.offset_ms) ?? 0), number(value.uncertainty_ms) ?? 0];
      if (!off || ahead > off.ms) off = { node, ms: ahead };
      if (!unsure || within > unsure.ms) unsure = { node, ms: within };
    }
    if (!off) return ["none", null];
    const most = this.limit("uncertainty_ms");
    if (unsure.ms > most) return ["warn", `${unsure.node} known to within ${brief(unsure.ms)} ms only (limit ${brief(most)} ms)`];
    return ["good", `${fixed(off.ms, 1)} ms off at most (${off.node}), known to within ${brief(unsure.ms)} ms`];
  }

  records() {
    let records = 0;
    let refused = 0;
    let seen = false;
    for (const series of this.run.history.keys("", "record").values()) {
      const value = series.at(this.run.t);
      if (!value) continue;
      seen = true;
      records += number(value.records) ?? 0;
      refused += number(value.refused) ?? 0;
    }
    if (!seen) return ["none", null];
    return [refused > 0 ? "warn" : "good", `${brief(records)}${refused > 0 ? `, ${brief(refused)} not believed` : ""}`];
  }
}
