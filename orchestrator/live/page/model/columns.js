// Makes columns for charts out of series. They grow as the run does: each call reads only what is new.

import { number } from "./words.js";

const PAUSE = 2.5; // seconds; what is said every second was not said for so long: nothing happened

/** Columns of fields of one series: times, then one column a field. `pause`: what stands where nothing was said. */
export class Fields {
  constructor(series, fields, pause) {
    this.series = series;
    this.fields = fields;
    this.pause = pause;
    this.reset();
  }

  reset() {
    this.read = 0;
    this.columns = [[], ...this.fields.map(() => [])];
  }

  /** Returns the columns; the same arrays, longer. */
  renew() {
    const { times, values } = this.series;
    const last = this.columns[0].at(-1);
    if (this.read > 0 && times[this.read - 1] !== last) this.reset(); // one came late: begin anew
    for (; this.read < times.length; this.read += 1) {
      const value = values[this.read];
      const before = this.columns[0].at(-1);
      if (this.pause !== undefined && times[this.read] - before > PAUSE) this.pad(before + 1, times[this.read] - 1);
      this.columns[0].push(times[this.read]);
      this.fields.forEach((field, at) => this.columns[at + 1].push(number(value?.[field])));
    }
    return this.columns;
  }

  pad(...moments) {
    for (const t of moments) {
      this.columns[0].push(t);
      for (const column of this.columns.slice(1)) column.push(this.pause);
    }
  }
}

const LATE = 0.5; // seconds; what was counted in a second is said so long after its end

/**
 * Columns of tuples a second, means of the last `window` seconds: one column a group of replicas.
 *
 * A replica says each second what it did in it, and once that it does nothing. So its last word holds; what
 * was left out of a long run changes little. `groups`: [{keys: ids of replicas, field}].
 */
export class Throughput {
  constructor(history, app, groups, window) {
    this.history = history;
    this.groups = groups.map(({ keys, field }) => ({ field, series: keys.map((key) => history.series(app, "rate", key, true)) }));
    this.window = window;
    this.first = null; // the first second of which something was said
    this.seconds = groups.map(() => []);
    this.columns = [[], ...groups.map(() => [])];
    const keys = new Set(groups.flatMap((group) => group.keys));
    history.onChange((t, of, channel, key) => {
      if (of === app && channel === "rate" && keys.has(key)) this.forget(Math.floor(t));
    });
  }

  /** What was said of `second` is new: it and those after it are read again. */
  forget(second) {
    if (this.first === null || second < this.first) this.first = second;
    const kept = second - this.first;
    for (const column of [...this.seconds, ...this.columns]) if (column.length > kept) column.length = kept;
  }

  /** Reads up to the last second that is known. Returns the columns; the same arrays, longer. */
  renew() {
    if (this.first === null) return this.columns;
    const [times, ...means] = this.columns;
    for (let second = this.first + times.length; second <= over(this.history.last); second += 1) {
      times.push(second + LATE);
      this.groups.forEach(({ field, series }, at) => {
        const said = this.seconds[at];
        said.push(series.reduce((sum, each) => sum + (number(each.values[each.search(second + 0.999)]?.[field]) ?? 0), 0));
        const recent = said.slice(-this.window);
        means[at].push(recent.reduce((sum, each) => sum + each, 0) / recent.length);
      });
    }
    return this.columns;
  }

  /** The rates in the last seconds before `t` that are known, none of them after `end`; or nulls. */
  at(t, end = Infinity) {
    const [times, ...means] = this.renew();
    const second = Math.min(over(t), Math.floor(end), this.first + times.length - 1);
    return means.map((column) => column[second - this.first] ?? null);
  }
}

/** The last second that is over at `t`, and of which everything was said. */
function over(t) {
  return Math.floor(t - LATE + 1e-6);
}

/** The part of columns between two moments. */
export function between(columns, from, until) {
  const [times] = columns;
  const low = place(times, from);
  const high = place(times, until);
  return columns.map((column) => column.slice(Math.max(0, low - 1), high));
}

function place(times, t) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}
