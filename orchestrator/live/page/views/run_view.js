// One run: map, streams, pictures, health, events, and the time slider that moves all of them.

import { button, el, setHidden, setText } from "../dom.js";
import { ask, askJson, Refused, runPath } from "../feed/api.js";
import { listenToKeys } from "../keys.js";
import { linkMoment, wishedMoment } from "../moment_link.js";
import { MapView } from "../map/view.js";
import { Run } from "../model/run.js";
import { number, span, text } from "../model/words.js";
import { DetectPanel } from "../panels/detect_panel.js";
import { DetectSentence } from "../panels/detect_sentence.js";
import { InterestPanel } from "../panels/interest_panel.js";
import { EventPanel } from "../panels/event_panel.js";
import { FlowSentence } from "../panels/flow_sentence.js";
import { FlowPanel } from "../panels/flow_panel.js";
import { Health } from "../panels/health.js";
import { NodePanel } from "../panels/node_panel.js";
import { PicturePanel } from "../panels/picture_panel.js";
import { DIED, Sentence } from "../panels/sentence.js";
import { StreamPanel } from "../panels/stream_panel.js";
import { TimeBar } from "../panels/time_bar.js";
import { countFrame, countShown } from "../stats.js";
import { themeButton } from "../theme.js";
import { factorText } from "./shell.js";

const BEHIND = 3; // seconds; with changes as new as that, the page has caught up
const WATCHED = 4; // seconds
const PANELS_MS = 250;
const CHARTS_MS = 1000;
const SOUGHT_MS = 60; // while someone moves the slider
const DRAW_MS = 30;

export async function showRun(root, feed, standalone) {
  const head = await feed.head();
  const about = standalone ? {} : await askJson("api/about").catch(() => ({}));
  const view = new RunView(head ?? {}, feed, standalone, about);
  root.replaceChildren(view.element);
  view.start();
  return view;
}

class RunView {
  constructor(head, feed, standalone, about) {
    this.run = new Run(head);
    this.feed = feed;
    this.asked = 0;
    this.charted = 0;
    this.drawn = 0;
    this.before = performance.now();
    this.urgent = true;
    const { run } = this;
    this.map = new MapView(run);
    window.roveStats.where = (kind, name) => this.map.where(kind, name);
    this.health = new Health(run);
    this.sentences = [...run.queries.map((app) => new Sentence(run, app)), ...run.flows.map((app) => new FlowSentence(run, app)), ...run.detects.map((app) => new DetectSentence(run, app))];
    const pictures = run.queries.filter((app) => app.view.pictures).map((app) => new PicturePanel(run, app, feed, () => (this.urgent = true)));
    const streams = run.queries.map((app) => new StreamPanel(run, app));
    const flows = [...run.flows.map((app) => new FlowPanel(run, app)), ...run.detects.map((app) => new DetectPanel(run, app)), ...run.interests.map((app) => new InterestPanel(run, app))];
    const events = new EventPanel(run, this.health.doubts);
    const nodes = new NodePanel(run, (node) => this.showNode(node));
    this.chartPanels = [...streams, ...flows];
    this.plainPanels = [this.health, ...this.sentences, ...pictures, events, nodes];
    this.bar = new TimeBar(run);
    this.banner = el("p", { class: "banner", role: "alert", hidden: true, "data-testid": "banner" });
    this.wished = wishedMoment();
    run.clock.changed = () => {
      this.urgent = true;
      linkMoment(run.clock);
    };
    this.help = listenToKeys(run.clock, {
      jump: (forward) => this.bar.jump(forward),
      measure: () => this.map.legend.element.querySelector('[aria-pressed="false"]:not([hidden])')?.click(),
      escape: () => this.map.pin(null),
    });
    this.element = el("div", { class: "run" },
      this.header(standalone, about), this.banner,
      el("div", { class: "sentences" }, this.sentences.map((each) => each.element)),
      this.health.element,
      el("div", { class: "columns" },
        el("div", { class: "column main" }, this.map.element, streams.length > 0 ? flows.map((each) => each.element) : null, el("div", { class: "pair" }, events.element, nodes.element)),
        el("div", { class: "column" }, pictures.map((each) => each.element), streams.map((each) => each.element), streams.length === 0 ? flows.map((each) => each.element) : null)),
      this.bar.element);
  }

  header(standalone, about) {
    const { head } = this.run;
    const factors = head.factors && typeof head.factors === "object" ? Object.entries(head.factors) : [];
    const facts = [
      text(head.backend, 20),
      head.virtual === true ? "virtual time" : null,
      number(head.seed) === null ? null : `seed ${head.seed}`,
      ...factors.filter(([name]) => name !== "seed").slice(0, 6).map(factorText),
    ];
    this.control = el("span", { class: "control" });
    if (about.control === true && !standalone) this.control.append(this.controlButton("stop", "Stop the run and keep its data?"), this.controlButton("down", "Take the run down at once?"));
    return el("header", { class: "top" },
      standalone ? el("span", { class: "brand", text: "Rove" }) : el("a", { class: "brand", href: ".", "aria-label": "All runs", text: "‹ Rove" }),
      el("h1", {}, text(head.experiment, 80) || "run", el("small", { text: text(head.run, 120) })),
      el("span", { class: "facts" }, facts.filter(Boolean).map((fact) => el("span", { text: fact }))),
      this.control,
      button("?", "Keys and help (?)", () => this.help.showModal(), { class: "quiet", "data-testid": "help-button" }), themeButton());
  }

  controlButton(verb, question) {
    const made = button(verb, `${verb} this run`, async () => {
      if (made.dataset.sure !== "yes") {
        made.dataset.sure = "yes";
        setText(made, `${question} Press again`);
        setTimeout(() => {
          made.dataset.sure = "";
          setText(made, verb);
        }, 5000);
        return;
      }
      made.disabled = true;
      try {
        await ask(runPath(this.run.head.run, verb), { method: "POST" });
        setText(made, `${verb}: asked`);
      } catch (error) {
        setText(made, `${verb}: ${text(error.message, 120)}`);
        made.disabled = false;
      }
    }, { class: "danger", "data-testid": `control-${verb}` });
    return made;
  }

  showNode(node) {
    this.map.pin({ kind: "node", node });
    this.map.element.scrollIntoView({ block: "nearest" });
    this.urgent = true;
  }

  start() {
    document.title = `${text(this.run.head.experiment, 80) || "run"} – Rove`;
    const fit = new ResizeObserver(() => this.fitMap());
    for (const part of [document.documentElement, ...this.element.children]) if (!part.classList.contains("columns")) fit.observe(part);
    fit.observe(this.map.legend.element);
    addEventListener("resize", () => this.fitMap());
    requestAnimationFrame((now) => this.frame(now));
    this.feed
      .follow((message) => this.take(message), () => (this.urgent = true))
      .catch((error) => this.fail(error));
  }

  fail(error) {
    if (error instanceof Refused && error.status === 410) {
      location.reload(); // the server began anew: what was read so far may be in another order
      return;
    }
    this.failure = `The server gives no more news: ${text(error.message, 200)}`;
    this.run.clock.goesOn = false;
    this.urgent = true;
    console.warn(this.failure);
  }

  take({ now, ended, changes }) {
    const { run } = this;
    const { clock } = run;
    run.history.take(changes);
    const first = !this.heard;
    this.heard = true;
    const wasLive = clock.live;
    clock.hear(Math.max(Number.isFinite(now) ? now : 0, ended ? run.history.last : 0), !ended);
    if (this.wished !== null && (ended || clock.edge >= this.wished)) {
      clock.seek(this.wished);
      this.wished = null;
    } else if (ended && wasLive) {
      this.openFinished();
    }
    this.urgent = true;
    if (ended || run.history.last > now - BEHIND) this.ready();
    else if (first) setTimeout(() => this.ready(), 2000);
  }

  /** What was before the page was opened has come. */
  ready() {
    this.since ??= { wall: performance.now(), t: this.run.clock.edge };
    document.documentElement.dataset.ready = "yes";
  }

  /** A finished run opens at the end of what was measured: there the stream still flows. One that was watched stays at its end. */
  openFinished() {
    const { head, clock } = this.run;
    const seconds = this.since ? (performance.now() - this.since.wall) / 1000 : 0;
    const watched = seconds > WATCHED && clock.edge - this.since.t < 3 * seconds; // not only read from the beginning
    const end = number(head.measure?.[1]);
    clock.seek(watched || end === null ? clock.edge : Math.max(0, end - 0.1));
    clock.fresh = !watched;
  }

  frame(now) {
    const began = performance.now();
    const { clock, history } = this.run;
    const passed = Math.min(1, Math.max(0, (now - this.before) / 1000));
    this.before = now;
    const holds = clock.live && this.feed.lost;
    const moved = !holds && clock.advance(passed);
    this.stale ||= moved || this.urgent || this.feed.lost;
    let worked = false;
    if (this.urgent || this.map.dirty || (moved && now - this.drawn >= DRAW_MS)) {
      this.drawn = now;
      this.urgent = false;
      this.map.draw(now);
      this.bar.renew();
      countShown(history);
      worked = true;
    }
    if (this.stale && now - this.asked >= (clock.live || clock.playing ? PANELS_MS : SOUGHT_MS)) {
      this.renewPanels(now);
      worked = true;
    }
    if (worked) countFrame(performance.now() - began);
    requestAnimationFrame((next) => this.frame(next));
  }

  renewPanels(now) {
    this.asked = now;
    const { clock } = this.run;
    const charts = now - this.charted >= CHARTS_MS || (!clock.live && !clock.playing);
    if (charts) this.charted = now;
    this.stale = false;
    for (const panel of this.plainPanels) panel.renew();
    for (const panel of this.chartPanels) panel.renew(charts);
    this.sayConnection();
  }

  /** Lets the map end where the time slider begins, on screens where both are seen at once. */
  fitMap() {
    const { stage, legend } = this.map;
    const wide = window.innerWidth > 900;
    const above = stage.getBoundingClientRect().top + window.scrollY;
    const below = legend.offsetHeight + this.bar.element.offsetHeight + 14;
    const height = wide ? `${Math.max(320, Math.round(window.innerHeight - above - below))}px` : "";
    if (stage.style.height !== height) stage.style.height = height;
  }

  sayConnection() {
    const { clock } = this.run;
    const lost = this.failure ?? (this.run.died ? DIED : this.feed.lost && clock.goesOn ? `Connection lost; the last news is ${span(this.feed.age())} old. Trying again.` : "");
    setHidden(this.banner, !lost);
    setText(this.banner, lost);
  }
}
