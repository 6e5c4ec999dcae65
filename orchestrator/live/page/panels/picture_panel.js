// The sink's newest annotated picture; at a past moment the nearest one that was kept, here or by the server.

import { el, setHidden, setText } from "../dom.js";
import { ago } from "../model/words.js";

const MOST = 120; // pictures that stay in this page; when there are more, every other one goes

export class PicturePanel {
  constructor(run, app, feed, changed) {
    this.run = run;
    this.app = app;
    this.feed = feed;
    this.changed = changed;
    this.kept = []; // {sink, frame, url}, in the order of their arrival
    this.answered = new Set(); // past frames that the server was asked for
    this.asking = false;
    this.reason = "";
    this.shown = null;
    this.sinks = app.view.replicas.filter((each) => app.view.role.get(each.operator) === "sink");
    this.image = el("img", { alt: `Picture at the sink of ${app.name}`, "data-testid": "picture", hidden: true });
    this.caption = el("figcaption", { text: "No picture yet." });
    this.element = el("section", { class: "panel picture", "aria-label": `Picture of ${app.name}` },
      el("h2", { text: run.queries.length > 1 ? `Picture: ${app.name}` : "Picture" }),
      el("figure", {}, this.image, this.caption));
  }

  /** The newest picture of any sink at the moment that is shown: {sink, frame, t}. */
  wanted() {
    let best = null;
    for (const { id } of this.sinks) {
      const series = this.run.history.series(this.app.name, "picture", id);
      const at = series.index(this.run.t);
      const frame = series.values[at]?.frame;
      if (Number.isFinite(frame) && (!best || series.times[at] > best.t)) best = { sink: id, frame, t: series.times[at] };
    }
    return best;
  }

  renew() {
    const wanted = this.wanted();
    if (!wanted) {
      this.show(null);
      setText(this.caption, "No picture yet.");
      return;
    }
    const { live } = this.run.clock;
    const best = this.nearest(wanted);
    const exact = best?.frame === wanted.frame;
    const key = `${live} ${wanted.sink} ${wanted.frame}`;
    if (!exact && !this.asking && !this.answered.has(key)) this.fetch(wanted, key, live);
    this.show(best);
    setText(this.caption, this.words(wanted, best, live));
  }

  words(wanted, best, live) {
    const age = `delivered ${ago(this.run.age(wanted.t))}`;
    if (!best) return `Frame ${wanted.frame} at ${wanted.sink}, ${age}${this.reason ? `: ${this.reason}` : ""}`;
    if (best.frame === wanted.frame || live) return `Frame ${best.frame} at ${wanted.sink}, ${age}`;
    return `Frame ${wanted.frame} was not kept; this is frame ${best.frame}`;
  }

  nearest({ sink, frame }) {
    let best = null;
    for (const each of this.kept) {
      if (each.sink === sink && (!best || Math.abs(each.frame - frame) <= Math.abs(best.frame - frame))) best = each;
    }
    return best;
  }

  show(picture) {
    setHidden(this.image, !picture);
    if (!picture || this.shown === picture) return;
    this.shown = picture;
    this.image.src = picture.url;
    this.image.dataset.frame = String(picture.frame);
  }

  /** At the live edge the newest one is asked for: not every one is kept. */
  async fetch(wanted, key, live) {
    this.asking = true;
    this.answered.add(key);
    if (this.answered.size > 5000) this.answered.clear();
    try {
      const { url, frame } = await this.feed.picture(this.app.name, wanted.sink, live ? null : wanted.frame);
      const number = frame ?? (live ? wanted.frame : this.newest(wanted.sink));
      this.kept.push({ sink: wanted.sink, frame: number, url });
      if (this.kept.length > MOST) this.thin();
      this.reason = "";
    } catch (error) {
      this.reason = String(error.message ?? error).slice(0, 120);
    }
    this.asking = false;
    this.changed();
  }

  /** Without a number the server sent the newest one that there is. */
  newest(sink) {
    return this.run.history.series(this.app.name, "picture", sink).values.at(-1)?.frame ?? 0;
  }

  thin() {
    const spare = this.kept.filter((each, at) => at % 2 === 0 && each !== this.shown);
    for (const { url } of spare) if (url.startsWith("blob:")) URL.revokeObjectURL(url);
    this.kept = this.kept.filter((each) => !spare.includes(each));
  }
}
