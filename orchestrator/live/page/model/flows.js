// What a flow does at a moment.

import { number } from "./words.js";

/** "ended": all was sent. "idle": nothing is sent. "lost": of what is sent, nothing arrives. "arrives": otherwise. */
export function flowState(value) {
  if (value === null) return "ended";
  const received = number(value?.received) ?? 0;
  if (received > 0) return "arrives";
  return (number(value?.sent) ?? 0) > 0 ? "lost" : "idle";
}
