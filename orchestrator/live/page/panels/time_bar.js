// The time slider over the whole run: phases as bands, switches and faults as marks, buttons to play and step.

import { button, el, refill, setClass, setText } from "../dom.js";
import { icon } from "../icons.js";
import { moment } from "../model/words.js";
import { SPEEDS } from "../model/clock.js";
import { colour, onTheme } from "../theme.js";

const HIGH = 30;
const FONT = "11px system-ui, -apple-system, sans-serif";

export class TimeBar {
  constructor(run) {
    this.run = run;
    this.drawn = "";
    this.width = 0;
    const { clock } = run;
    this.marks = el("canvas", { class: "marks", "aria-hidden": "true" });
    this.range = el("input", {
      type: "range", min: "0", max: "1", step: "0.01", value: "0", "aria-label": "Moment of the run", "data-testid": "slider",
      oninput: () => clock.seek(Number(this.range.value)),
    });
    this.play = button("", "Play or pause (space)", () => clock.toggle(), { class: "play", "data-testid": "play" });
    this.live = button("Back to live", "Back to live (L)", () => clock.toLive(), { class: "live", "data-testid": "live" });
    this.speed = el("select", { "aria-label": "Speed (+ and -)", "data-testid": "speed", onchange: () => {
      clock.speed = Number(this.speed.value);
      clock.changed();
    } }, SPEEDS.map((each) => el("option", { value: String(each), text: `${each}×` })));
    this.shown = el("span");
    this.whole = el("span", { class: "whole" });
    this.time = el("output", { class: "time", "data-testid": "time" }, this.shown, this.whole);
    const jump = (forward) => {
      const t = run.marks.neighbour(clock.t, forward);
      if (t !== null) clock.seek(t);
    };
    this.jump = jump;
    this.buttons = el("div", { class: "buttons" },
      withIcon("previous", button("", "Previous switch or fault ([)", () => jump(false), { class: "quiet", "data-testid": "previous" })),
      button("−1 s", "One second back (←)", () => clock.seek(clock.t - 1), { class: "quiet step" }),
      this.play,
      button("+1 s", "One second on (→)", () => clock.seek(clock.t + 1), { class: "quiet step" }),
      withIcon("next", button("", "Next switch or fault (])", () => jump(true), { class: "quiet", "data-testid": "next" })),
      this.speed, this.time, this.live);
    this.track = el("div", { class: "track" }, this.marks, this.range);
    this.element = el("footer", { class: "timebar", "aria-label": "Time" }, this.track, this.buttons);
    new ResizeObserver(() => {
      this.width = Math.round(this.track.clientWidth);
      this.drawn = "";
    }).observe(this.track);
    onTheme(() => (this.drawn = ""));
  }

  renew() {
    const { clock } = this.run;
    const max = Math.max(clock.edge, 1);
    if (Math.abs(Number(this.range.max) - max) > 0.005) this.range.max = max.toFixed(2);
    const value = clock.t.toFixed(2);
    if (this.range.value !== value) this.range.value = value;
    const phase = this.run.marks.phase(clock.asked);
    const said = `${moment(clock.t)} of ${moment(clock.edge)}`;
    if (Math.floor(clock.t) !== this.second) {
      this.second = Math.floor(clock.t);
      this.range.setAttribute("aria-valuetext", phase ? `${said}, ${phase.name}` : said);
    }
    setText(this.shown, moment(clock.t));
    setText(this.whole, ` of ${moment(clock.edge)}`);
    const moving = clock.live || clock.playing;
    refill(this.play, moving ? "pause" : "play", () => icon(moving ? "pause" : "play"));
    setText(this.live, clock.goesOn ? (clock.live ? "● Live" : "Back to live") : "End");
    setClass(this.live, "on", clock.live);
    if (this.speed.value !== String(clock.speed)) this.speed.value = String(clock.speed);
    this.drawMarks(max);
  }

  drawMarks(max) {
    const { width } = this;
    const { marks } = this.run;
    const step = Math.max(0.5, max / width); // as the run grows, marks are drawn anew twice a second, later every pixel
    const signature = [Math.floor(max / step), marks.switches.length, marks.events.length, marks.phases.length].join(" ");
    if (width < 10 || signature === this.drawn) return;
    this.drawn = signature;
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    this.marks.width = width * ratio;
    this.marks.height = HIGH * ratio;
    const context = this.marks.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const pad = 8; // half of the slider's thumb
    const place = (t) => pad + (t / max) * (width - 2 * pad);
    this.bands(context, place, max);
    this.ticks(context, place);
  }

  bands(context, place, max) {
    context.font = FONT;
    context.textBaseline = "middle";
    this.run.marks.spans(max).forEach((span, index) => {
      const from = place(span.from);
      const wide = Math.max(1, place(span.until) - from);
      const measured = span.name === "measure";
      context.fillStyle = colour(measured ? "band-measure" : index % 2 ? "band-1" : "band-0");
      context.fillRect(from, 0, wide, 14);
      const words = span.name;
      if (context.measureText(words).width + 8 < wide) {
        context.fillStyle = colour("ink");
        context.fillText(words, from + 4, 7.5);
      }
    });
  }

  ticks(context, place) {
    const { switches, events } = this.run.marks;
    context.fillStyle = colour("mark");
    let last = -9;
    for (const t of switches.times) {
      const x = place(t);
      if (x - last < 2) continue; // marks that would cover one another are one
      last = x;
      context.fillRect(x - 1, 15, 2, 14);
    }
    last = -9;
    events.values.forEach((value, at) => {
      if (value?.kind !== "fault" && value?.level !== "error") return;
      const x = place(events.times[at]);
      if (x - last < 4) return;
      last = x;
      context.fillStyle = colour("bad");
      context.beginPath();
      context.moveTo(x - 5, 15);
      context.lineTo(x + 5, 15);
      context.lineTo(x, 23);
      context.fill();
    });
  }
}

function withIcon(name, made) {
  made.append(icon(name));
  return made;
}
