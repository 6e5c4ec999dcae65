// Radio links as pairs of nodes: both directions of a link are one line on the map.

import { number } from "../model/words.js";

export const CLASSES = ["good", "fair", "poor"];
export const LEGENDS = {
  etx: { title: "ETX", good: "up to 1.3", fair: "up to 2.5", poor: "above" },
  snr: { title: "SNR", good: "20 dB and more", fair: "10 dB and more", poor: "below" },
};

export class LinkPairs {
  constructor(history) {
    this.history = history;
    this.pairs = new Map();
    this.known = { link: 0, signal: 0 };
  }

  /** Takes up links that were seen for the first time. */
  renew() {
    for (const channel of ["link", "signal"]) {
      const keys = this.history.keys("", channel);
      if (keys.size === this.known[channel]) continue;
      this.known[channel] = keys.size;
      for (const [key, series] of keys) this.place(key, channel, series);
    }
    return this.pairs;
  }

  place(key, channel, series) {
    const at = key.indexOf(">");
    if (at < 1) return;
    const a = key.slice(0, at);
    const b = key.slice(at + 1);
    const forward = a < b;
    const name = forward ? `${a}>${b}` : `${b}>${a}`;
    let pair = this.pairs.get(name);
    if (!pair) {
      pair = { a: forward ? a : b, b: forward ? b : a, link: [null, null], signal: [null, null] };
      this.pairs.set(name, pair);
    }
    pair[channel][forward ? 0 : 1] = series;
  }
}

/** Whether the SNR of any link is known: not on real nodes, nor where a radio reaches all within a disc. */
export function hasSignals(history) {
  return history.keys("", "signal").size > 0;
}

/** The value of a direction of a link: ETX or SNR, or null. */
export function valueOf(pair, direction, measure, t) {
  const series = measure === "etx" ? pair.link[direction] : pair.signal[direction];
  return number(series?.at(t)?.[measure]);
}

/** Whether there is a link, in either direction. */
export function exists(pair, t) {
  const link = pair.link;
  if (link[0] || link[1]) return Boolean(link[0]?.at(t) || link[1]?.at(t));
  return Boolean(pair.signal[0]?.at(t) || pair.signal[1]?.at(t));
}

/** 0 good, 1 fair, 2 poor, 3 not known: by the worse direction. */
export function classOf(pair, measure, t) {
  const there = valueOf(pair, 0, measure, t);
  const back = valueOf(pair, 1, measure, t);
  if (there === null && back === null) return 3;
  if (measure === "etx") {
    const worse = Math.max(there ?? 0, back ?? 0);
    return worse <= 1.3 ? 0 : worse <= 2.5 ? 1 : 2;
  }
  const worse = Math.min(there ?? Infinity, back ?? Infinity);
  return worse >= 20 ? 0 : worse >= 10 ? 1 : 2;
}
