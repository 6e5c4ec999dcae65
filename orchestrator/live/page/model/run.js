// A run as the page knows it: its head, its history, the moment that is shown.

import { Clock } from "./clock.js";
import { History } from "./history.js";
import { Marks } from "./marks.js";
import { readView } from "./paths.js";
import { number, text } from "./words.js";

const WELL = new Set(["ok", "ended"]);

export class Run {
  constructor(head) {
    this.head = head;
    this.history = new History();
    this.marks = new Marks(this.history);
    this.clock = new Clock();
    this.clock.virtual = head.virtual === true;
    this.clock.begin = number(head.measure?.[0]) ?? 0;
    this.nodes = (Array.isArray(head.nodes) ? head.nodes : []).map((each) => text(each?.name ?? each, 100)).filter(Boolean);
    this.apps = (Array.isArray(head.apps) ? head.apps : []).map((app, index) => ({
      name: text(app?.name, 100),
      kind: text(app?.kind, 40),
      view: readView(app?.view),
      index,
    }));
    this.hosted = new Map(); // node → [{app, replica}]
    for (const app of this.apps) {
      for (const replica of app.view.replicas) {
        if (!this.hosted.has(replica.node)) this.hosted.set(replica.node, []);
        this.hosted.get(replica.node).push({ app, replica });
      }
    }
  }

  get queries() {
    return this.apps.filter((app) => app.view.operators.length > 0);
  }

  get flows() {
    return this.apps.filter((app) => app.view.flows.length > 0);
  }

  /** Applications that detect events. */
  get detects() {
    return this.apps.filter((app) => app.view.patterns.length > 0);
  }

  /** Applications with interests that move. */
  get interests() {
    return this.apps.filter((app) => app.view.situations.length > 0);
  }

  /** The moment that states are asked for. */
  get t() {
    return this.clock.asked;
  }

  /** How long ago something was, from the moment that is shown. */
  age(since) {
    return Math.max(0, this.clock.t - since);
  }

  /** {state, why, since, well} of a node. */
  nodeState(node, t = this.t) {
    const series = this.history.series("", "node", node);
    const at = series.index(t);
    const value = series.values[at];
    if (!value || typeof value.state !== "string") return { state: "unknown", why: "", since: 0, well: true };
    return { state: text(value.state, 30), why: text(value.why), since: series.times[at], well: WELL.has(value.state) };
  }

  /** Whether nobody looks after the run any more: its process is gone, and it was not taken down. */
  get died() {
    return this.lastWord?.died === true;
  }

  /** Whether it had died at the moment that is shown. */
  get isDead() {
    return this.history.at("", "verdict", "", this.t)?.died === true;
  }

  /** The newest that was said of the verdict, whatever moment is shown. */
  get lastWord() {
    return this.history.series("", "verdict", "").values.at(-1);
  }

  /** When measuring had ended, or the run had died, before the moment that is shown; else Infinity. */
  get measuredUntil() {
    const { times, values } = this.marks.phases;
    const ended = values.findIndex((value) => value?.phase === "measure" && value.state === "finished");
    if (ended >= 0 && times[ended] <= this.t) return times[ended];
    return this.isDead ? this.history.series("", "verdict", "").since(this.t) : Infinity;
  }
}
