// Puts numbers into words. Whatever is no finite number becomes a dash.

const NONE = "–";

export function number(value) {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

export function fixed(value, digits = 1) {
  const known = number(value);
  return known === null ? NONE : known.toFixed(digits);
}

/** Three significant digits at most: 1234 → 1,234; 12.34 → 12.3; 0.1234 → 0.123. */
export function brief(value) {
  const known = number(value);
  if (known === null) return NONE;
  const size = Math.abs(known);
  if (size >= 1000) return Math.round(known).toLocaleString("en");
  if (size === 0 || Number.isInteger(known)) return String(known);
  return String(Number(known.toPrecision(size >= 100 ? 3 : size >= 0.1 ? 3 : 2)));
}

/** A moment of the run: 4.2 s, 1:05.3, 1:02:05. */
export function moment(seconds) {
  const known = number(seconds);
  if (known === null) return NONE;
  const sign = known < 0 ? "−" : "";
  const size = Math.abs(known);
  if (size < 60) return `${sign}${size.toFixed(1)} s`;
  const minutes = Math.floor(size / 60);
  if (minutes < 60) return `${sign}${minutes}:${(size % 60).toFixed(1).padStart(4, "0")}`;
  const rest = String(Math.floor(size % 60)).padStart(2, "0");
  return `${sign}${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`;
}

/** How long something takes or has been: 4.2 s, 2 min 5 s, 3 h 20 min. */
export function span(seconds) {
  const known = number(seconds);
  if (known === null) return NONE;
  const size = Math.max(0, known);
  if (size < 60) return `${size.toFixed(size < 10 ? 1 : 0)} s`;
  if (size < 3600) return `${Math.floor(size / 60)} min ${Math.floor(size % 60)} s`;
  if (size < 172800) return `${Math.floor(size / 3600)} h ${Math.floor((size % 3600) / 60)} min`;
  return `${Math.floor(size / 86400)} days`;
}

export function ago(seconds) {
  return `${span(seconds)} ago`;
}

/** Of a time in seconds, with the unit that fits: 840 µs, 12 ms, 1.4 s. */
export function delay(seconds) {
  const known = number(seconds);
  if (known === null) return NONE;
  if (known === 0) return "0";
  if (known < 0.001) return `${Math.round(known * 1e6)} µs`;
  if (known < 1) return `${brief(Number((known * 1000).toPrecision(3)))} ms`;
  return `${known.toFixed(known < 10 ? 2 : 1)} s`;
}

export function percent(ratio) {
  const known = number(ratio);
  if (known === null) return NONE;
  const value = known * 100;
  return `${value === 0 || value >= 10 ? value.toFixed(0) : value < 0.1 ? "< 0.1" : value.toFixed(1)} %`;
}

export function bits(perSecond) {
  const known = number(perSecond);
  if (known === null) return NONE;
  if (known >= 1e6) return `${(known / 1e6).toFixed(2)} Mb/s`;
  if (known >= 1e3) return `${(known / 1e3).toFixed(known >= 1e5 ? 0 : 1)} kb/s`;
  return `${Math.round(known)} b/s`;
}

export function bytes(count) {
  const known = number(count);
  if (known === null) return NONE;
  if (known >= 1e9) return `${(known / 1e9).toFixed(1)} GB`;
  if (known >= 1e6) return `${(known / 1e6).toFixed(1)} MB`;
  if (known >= 1e3) return `${(known / 1e3).toFixed(1)} kB`;
  return `${known} B`;
}

export function many(count, one, more = `${one}s`) {
  return `${brief(count)} ${count === 1 ? one : more}`;
}

/** A text of someone else, cut to a length that fits; anything but a text becomes "". */
export function text(value, longest = 400) {
  if (typeof value === "number") return String(value);
  if (typeof value !== "string") return "";
  return value.length > longest ? `${value.slice(0, longest - 1)}…` : value;
}
