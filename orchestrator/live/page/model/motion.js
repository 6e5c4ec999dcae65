// Where nodes are at a moment: samples come about once a second, between them they move evenly.

import { number } from "./words.js";

const LONGEST_GAP = 5; // seconds; over a longer one nothing is known about the way between

/** Returns [x, y] in metres, or null. */
export function positionAt(series, t) {
  const at = series.index(t);
  if (at < 0) return point(series.values[0]);
  const here = point(series.values[at]);
  const next = point(series.values[at + 1]);
  if (!here || !next) return here;
  const from = series.times[at];
  const gap = series.times[at + 1] - from;
  if (gap <= 0 || gap > LONGEST_GAP) return here;
  const part = Math.min(1, Math.max(0, (t - from) / gap));
  return [here[0] + (next[0] - here[0]) * part, here[1] + (next[1] - here[1]) * part];
}

function point(value) {
  if (!Array.isArray(value)) return null;
  const [x, y] = value;
  return number(x) === null || number(y) === null ? null : [x, y];
}
