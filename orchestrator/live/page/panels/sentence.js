// Says in plain words where a stream goes now, why it switched last, and what is wrong.

import { el, refill } from "../dom.js";
import { because, mainPaths, routeAt, targets } from "../model/paths.js";
import { ago, brief, number, percent, span, text } from "../model/words.js";

const MOST_NAMED = 3;
export const DIED = "This run died: its process is gone. rove down takes away what it left.";
const QUIET = 5; // seconds without a delivery that are worth a word

export class Sentence {
  constructor(run, app) {
    this.run = run;
    this.app = app;
    this.element = el("p", { class: "sentence", "data-testid": "sentence" });
  }

  renew() {
    const parts = this.parts();
    refill(this.element, JSON.stringify(parts), () => parts.map(([kind, words]) => el("span", { class: kind, text: words })));
  }

  parts() {
    const { run, app } = this;
    const paths = mainPaths(run.history, app.name, app.view, run.t);
    const parts = [];
    if (run.queries.length > 1) parts.push(["name", `${app.name}: `]);
    if (paths.length === 0) return [["", "This query has no source."]];
    if (run.isDead) parts.push(["bad", `${DIED} `]);
    const ended = run.isDead || run.nodes.length > 0 && run.nodes.every((node) => run.nodeState(node).state === "ended");
    paths.slice(0, 3).forEach((path, at) => {
      parts.push(["", at > 0 ? " And " : ended ? "At its end the stream went " : "Stream goes "]);
      parts.push(["path", path.steps.map((each) => `${each.id} (${each.node})`).join(" → ")]);
      const { stopped } = path;
      if (stopped?.value) parts.push(["bad", ` and waits there: ${because(stopped.value.why, stopped.downstream)}`]);
      else if (stopped) parts.push(["soft", ` and no further yet: ${stopped.from} has decided nothing`]);
      parts.push(["", stopped?.value ? "" : "."]);
    });
    if (paths.length > 3) parts.push(["soft", ` And ${paths.length - 3} more ways.`]);
    parts.push(...this.divided(paths), ...this.troubles(paths), ...this.lastSwitch(paths));
    return parts.filter(([, words]) => words);
  }

  /** Replicas that send to several at once. */
  divided(paths) {
    const { run, app } = this;
    const passed = new Set(paths.flatMap((path) => path.steps));
    const found = [];
    for (const replica of passed) {
      for (const operator of app.view.downstream.get(replica.operator) ?? []) {
        const used = targets(routeAt(run.history, app.name, replica.id, operator, run.t).value);
        if (used.length > 1) found.push(["", ` ${replica.id} divides its output: ${used.map(([to, share]) => `${to} ${percent(share)}`).join(", ")}.`]);
      }
    }
    return found;
  }

  troubles(paths) {
    const { run, app } = this;
    const found = [];
    const nodes = new Set();
    for (const path of paths) {
      for (const replica of path.steps) {
        const state = run.nodeState(replica.node);
        if (state.well || nodes.has(replica.node)) continue;
        nodes.add(replica.node);
        found.push(`${replica.node}, where ${replica.id} runs, is ${state.state} for ${span(run.age(state.since))}.`);
      }
    }
    if (paths.some((path) => path.stopped?.value)) found.push(...this.inTheWay(paths, nodes));
    const quiet = quietFor(run, app);
    if (quiet !== null && quiet >= QUIET) found.push(`Nothing was delivered for ${span(quiet)}.${this.longestQueue()}`);
    return found.map((words) => ["bad", ` ${words}`]);
  }

  /** Where a route is lost: nodes in trouble where the next replicas run; if these are well, any others. */
  inTheWay(paths, named) {
    const { run, app } = this;
    const found = [];
    for (const { stopped } of paths) {
      for (const replica of stopped?.value ? app.view.replicas : []) {
        const state = run.nodeState(replica.node);
        if (replica.operator !== stopped.downstream || state.well || named.has(replica.node)) continue;
        named.add(replica.node);
        found.push(`${replica.node}, where ${replica.id} runs, is ${state.state} for ${span(run.age(state.since))}.`);
      }
    }
    if (found.length > 0 || named.size > 0) return found.slice(0, MOST_NAMED);
    const ill = run.nodes.filter((node) => !run.nodeState(node).well);
    const words = ill.slice(0, MOST_NAMED).map((node) => `${node} is ${run.nodeState(node).state} for ${span(run.age(run.nodeState(node).since))}`);
    const more = ill.length > MOST_NAMED ? ` and ${ill.length - MOST_NAMED} more nodes are not well` : "";
    return words.length > 0 ? [`It may have led over a node in trouble: ${words.join(", ")}${more}.`] : [];
  }

  longestQueue() {
    const { run, app } = this;
    let worst = null;
    for (const replica of app.view.replicas) {
      const queue = run.history.at(app.name, "queue", replica.id, run.t);
      const waits = Math.max(number(queue?.in) ?? 0, number(queue?.out) ?? 0);
      if (waits > (worst?.waits ?? 0)) worst = { replica, waits };
    }
    return worst ? ` Most waits at ${worst.replica.id} (${worst.replica.node}): ${brief(worst.waits)}.` : "";
  }

  /** Only switches of replicas that the stream passes: others change nothing for it. */
  lastSwitch(paths) {
    const { run, app } = this;
    const passed = new Set(paths.flatMap((path) => path.steps.map((each) => each.id)));
    const last = run.marks.lastSwitch(app.name, passed, run.t);
    if (!last) return [["soft", " It has not switched yet."]];
    const { from, downstream, old, to, why } = last.value;
    const words = `${text(old, 60) || "no route"} → ${text(to, 60) || "no route"}`;
    const end = text(why).endsWith(".") ? "" : ".";
    return [
      ["", ` Last switch ${ago(run.age(last.t))}, by ${from}: `],
      ["switch", words],
      ["", ` because ${because(text(why), downstream)}${end}`],
    ];
  }
}

/** How long nothing has been delivered at the moment, or null where nothing was expected yet. */
export function quietFor(run, app) {
  const phase = run.marks.phase(run.t);
  if (run.isDead || !phase || !["warm-up", "measure"].includes(phase.name) || phase.outcome) return null;
  let latest = phase.from;
  for (const replica of app.view.replicas) {
    const since = lastDelivery(run.history.series(app.name, "latency", replica.id), run.t);
    if (since !== null && since > latest) latest = since;
  }
  return Math.max(0, run.clock.t - latest);
}

function lastDelivery(series, t) {
  for (let at = series.index(t), steps = 0; at >= 0 && steps < 120; at -= 1, steps += 1) {
    if ((number(series.values[at]?.n) ?? 0) > 0) return series.times[at];
  }
  return null;
}
