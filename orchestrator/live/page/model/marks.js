// Collects what stands out in a run, in the order of time: switches, events, phases.

import { Series } from "./history.js";

export class Marks {
  constructor(history) {
    this.switches = new Series(); // of all applications: {app, from, downstream, old, to, why, first}
    this.events = history.series("", "event", "", true);
    this.phases = history.series("", "phase", "", true);
    history.onChange((t, app, channel, key, value) => {
      if (channel === "route" && value && value.switch === true) {
        const [from, downstream] = split(key);
        this.switches.add(t, { app, from, downstream, ...value });
      }
    });
  }

  /** The last switch of an application by one of `replicas` that is not later than `t`: {t, value}, or null. */
  lastSwitch(app, replicas, t) {
    for (let at = this.switches.index(t), steps = 0; at >= 0 && steps < 2000; at -= 1, steps += 1) {
      const value = this.switches.values[at];
      if (value.app === app && replicas.has(value.from)) return { t: this.switches.times[at], value };
    }
    return null;
  }

  /** The newest `most` switches of an application that are not later than `t`, newest first. */
  recentSwitches(app, t, most) {
    const found = [];
    for (let at = this.switches.index(t); at >= 0 && found.length < most; at -= 1) {
      const value = this.switches.values[at];
      if (value.app === app) found.push({ t: this.switches.times[at], value });
    }
    return found;
  }

  /** Moments of switches and faults: the next one after `t` (or before it), or null. */
  neighbour(t, forward) {
    const near = [this.switches, this.events].map((series) => {
      let at = series.index(forward ? t + 0.05 : t - 0.05);
      if (forward) at += 1;
      while (series === this.events && series.values[at] && series.values[at].kind !== "fault") at += forward ? 1 : -1;
      return series.times[at];
    });
    const known = near.filter((each) => each !== undefined);
    if (known.length === 0) return null;
    return forward ? Math.min(...known) : Math.max(...known);
  }

  /** Spans of phases up to `end`: [{name, from, until, outcome}]. */
  spans(end) {
    const spans = [];
    const { times, values } = this.phases;
    for (let at = 0; at < times.length; at += 1) {
      const value = values[at];
      if (!value) continue;
      const open = spans.find((span) => span.name === value.phase && span.until === null);
      if (value.state === "started") spans.push({ name: String(value.phase), from: times[at], until: null });
      else if (open) Object.assign(open, { until: times[at], outcome: value.outcome });
    }
    for (const span of spans) span.until ??= end;
    return spans;
  }

  /** The phase that is under way at `t`: {name, from} or null. */
  phase(t) {
    for (let at = this.phases.index(t); at >= 0; at -= 1) {
      const value = this.phases.values[at];
      if (value && value.state === "started") return { name: String(value.phase), from: this.phases.times[at] };
      if (value) return { name: String(value.phase), from: this.phases.times[at], outcome: value.outcome ?? "finished" };
    }
    return null;
  }
}

function split(key) {
  const at = key.indexOf(">");
  return at < 0 ? [key, ""] : [key.slice(0, at), key.slice(at + 1)];
}
