// Follows a run on the server: changes as server-sent events, read by fetch so that the token can go in a header.
// After a loss it asks again from where it was.

import { ask, askJson, Refused, runPath } from "./api.js";

const SILENCE_MS = 25000; // the server says something at least every 10 s
const AGAIN_MS = [500, 1000, 2000, 4000, 8000];

export class ServerFeed {
  constructor(run) {
    this.run = run;
    this.cursor = null;
    this.heard = performance.now();
    this.lost = false;
    this.ended = false;
    this.closed = false;
    this.failures = 0;
  }

  head() {
    return askJson(runPath(this.run, "head"));
  }

  /** Calls `take({now, ended, changes})` for each message until the run has ended or the feed is closed. */
  async follow(take, changed) {
    while (!this.closed && !this.ended) {
      try {
        await this.read(take);
        if (this.ended || this.closed) return;
      } catch (error) {
        if (error instanceof Refused && [400, 401, 403, 404, 410].includes(error.status)) throw error;
      }
      this.setLost(true, changed);
      const wait = AGAIN_MS[Math.min(this.failures, AGAIN_MS.length - 1)];
      this.failures += 1;
      await new Promise((done) => setTimeout(done, wait));
    }
  }

  async read(take) {
    const stop = new AbortController();
    this.stop = stop;
    let watch = setTimeout(() => stop.abort(), SILENCE_MS);
    const alive = () => {
      clearTimeout(watch);
      watch = setTimeout(() => stop.abort(), SILENCE_MS);
    };
    try {
      const after = this.cursor === null ? "" : `?after=${encodeURIComponent(this.cursor)}`;
      const answer = await ask(runPath(this.run, `changes${after}`), { signal: stop.signal });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      let done = false;
      while (!done && !this.closed) {
        const part = await reader.read();
        done = part.done;
        alive();
        const events = (rest + (part.value ?? "")).split(/\r?\n\r?\n/);
        rest = events.pop();
        this.heard = performance.now();
        this.failures = 0;
        this.lost = false;
        for (const event of events) {
          if (this.hear(event, take)) return;
        }
      }
    } finally {
      clearTimeout(watch);
      stop.abort();
    }
  }

  /** Returns whether the run has ended with this. */
  hear(event, take) {
    const data = event
      .split(/\r?\n/)
      .filter((line) => line.startsWith("data:"))
      .map((line) => line.slice(5).trimStart())
      .join("\n");
    if (!data) return false;
    const message = JSON.parse(data);
    if (message.cursor !== undefined) this.cursor = message.cursor;
    this.ended = message.ended === true;
    take({ now: message.now, ended: this.ended, changes: Array.isArray(message.changes) ? message.changes : [] });
    return this.ended;
  }

  setLost(lost, changed) {
    this.lost = lost;
    changed();
  }

  /** Seconds since the server was heard. */
  age() {
    return (performance.now() - this.heard) / 1000;
  }

  async picture(app, sink, frame) {
    const which = frame === null ? "" : `?frame=${encodeURIComponent(frame)}`;
    const path = runPath(this.run, `pictures/${encodeURIComponent(app)}/${encodeURIComponent(sink)}${which}`);
    const answer = await ask(path);
    const shown = answer.headers.get("X-Rove-Frame");
    return { url: URL.createObjectURL(await answer.blob()), frame: shown === null ? null : Number(shown) };
  }

  close() {
    this.closed = true;
    this.stop?.abort();
  }
}
