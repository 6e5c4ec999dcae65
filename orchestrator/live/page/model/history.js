// Keeps every change of a run, and answers what was the case at a moment.
//
// For each (app, channel, key) there is one series, ordered by time. Asking for the value at a moment costs a
// step or two while time goes on, and a binary search after a jump; never a walk over the history.

export class Series {
  constructor() {
    this.times = [];
    this.values = [];
    this.hint = -1;
  }

  get length() {
    return this.times.length;
  }

  add(t, value) {
    const n = this.times.length;
    if (n === 0 || t >= this.times[n - 1]) {
      this.times.push(t);
      this.values.push(value);
      return;
    }
    const place = this.search(t) + 1; // records of several nodes are mixed: this one came late
    this.times.splice(place, 0, t);
    this.values.splice(place, 0, value);
    this.hint = -1;
  }

  /** The last index that is not later than `t`, or -1. */
  index(t) {
    const { times } = this;
    let at = this.hint;
    for (let step = 0; step < 3; step += 1) {
      if ((at < 0 || times[at] <= t) && (at + 1 >= times.length || times[at + 1] > t)) {
        this.hint = at;
        return at;
      }
      if (at >= 0 && times[at] > t) break;
      at += 1;
    }
    this.hint = this.search(t);
    return this.hint;
  }

  search(t) {
    const { times } = this;
    let low = 0;
    let high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= t) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** The value at `t`; undefined before the first, null where it has ended. */
  at(t) {
    return this.values[this.index(t)];
  }

  /** When the value at `t` began. */
  since(t) {
    return this.times[this.index(t)];
  }
}

const EMPTY = new Map();
const NOTHING = new Series();

export class History {
  constructor() {
    this.channels = new Map();
    this.version = 0;
    this.count = 0;
    this.last = 0;
    this.refused = 0;
    this.listeners = [];
  }

  /** Takes changes as they come: [t, app, channel, key, value]. What has another form is counted, not kept. */
  take(changes) {
    for (const change of changes) {
      if (!isChange(change)) {
        this.refused += 1;
        continue;
      }
      const [t, app, channel, key, value] = change;
      this.series(app, channel, key, true).add(t, value);
      if (t > this.last) this.last = t;
      for (const listener of this.listeners) listener(t, app, channel, key, value);
    }
    this.count += changes.length;
    if (changes.length > 0) this.version += 1;
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  series(app, channel, key, make = false) {
    const name = `${app}\u0000${channel}`;
    let keys = this.channels.get(name);
    if (keys === undefined) {
      if (!make) return NOTHING;
      keys = new Map();
      this.channels.set(name, keys);
    }
    let found = keys.get(key);
    if (found === undefined) {
      if (!make) return NOTHING;
      found = new Series();
      keys.set(key, found);
    }
    return found;
  }

  /** All keys of a channel with their series. */
  keys(app, channel) {
    return this.channels.get(`${app}\u0000${channel}`) ?? EMPTY;
  }

  at(app, channel, key, t) {
    return this.series(app, channel, key).at(t);
  }
}

function isChange(change) {
  return (
    Array.isArray(change) &&
    change.length === 5 &&
    Number.isFinite(change[0]) &&
    typeof change[1] === "string" &&
    typeof change[2] === "string" &&
    typeof change[3] === "string"
  );
}
