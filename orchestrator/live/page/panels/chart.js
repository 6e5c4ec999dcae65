// Charts over the run's time, by uPlot: big ones with axes, and small ones of a few words' size.
// A line shows the moment; a click on a chart goes to the moment that was clicked.

import { el } from "../dom.js";
import { moment } from "../model/words.js";
import { colour, onTheme } from "../theme.js";

const charts = new Set();
let waiting = false;

onTheme(() => {
  for (const chart of charts) chart.rebuild();
});

export class Chart {
  /** `lines`: [{label, variable, dash}]; `words(value)` names a value; `go(t)` is called on a click. */
  constructor({ label, lines, height = 120, words, go, small = false, testid = null }) {
    this.settings = { label, lines, height, words, go, small };
    this.data = [[], ...lines.map(() => [])];
    this.from = 0;
    this.until = 1;
    this.mark = null;
    this.place = el("div", { class: small ? "spark" : "chart", role: "img", "aria-label": label, "data-testid": testid });
    this.plot = null;
    this.dirty = false;
    charts.add(this);
    new ResizeObserver(() => this.fit()).observe(this.place);
  }

  fit() {
    const width = Math.floor(this.place.clientWidth);
    if (width < 20 || width === this.width) return;
    this.width = width;
    if (this.plot) this.plot.setSize({ width, height: this.settings.height });
    else this.rebuild();
    this.moveMark();
  }

  rebuild() {
    if (!this.width) return;
    this.plot?.destroy();
    this.plot = new window.uPlot(this.options(), this.data, this.place);
    this.line = el("div", { class: "now", hidden: true });
    this.plot.over.append(this.line);
    if (this.settings.go) {
      this.plot.over.addEventListener("click", (event) => {
        this.settings.go(this.plot.posToVal(event.offsetX, "x"));
      });
    }
    this.scale();
    this.moveMark();
  }

  options() {
    const { lines, height, words, small } = this.settings;
    const soft = colour("soft");
    const font = "11px system-ui, -apple-system, sans-serif";
    const axis = { stroke: soft, font, grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false }, gap: 3 };
    return {
      width: this.width,
      height,
      padding: small ? [2, 2, 2, 2] : [8, 6, 0, 0],
      legend: { show: false },
      cursor: small ? { show: false } : { y: false, drag: { x: false, y: false }, points: { size: 6 } },
      select: { show: false },
      scales: { x: { time: false, auto: false }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] } },
      axes: small
        ? [{ show: false }, { show: false }]
        : [
            { ...axis, size: 20, space: 70, values: (_, ticks) => ticks.map((t) => moment(t).replace(".0", "")) },
            { ...axis, size: 46, space: 26, values: (_, ticks) => ticks.map((value) => words(value)) },
          ],
      series: [
        {},
        ...lines.map(({ label, variable, dash, fill }) => ({
          label,
          stroke: colour(variable),
          width: small ? 1.5 : 2,
          dash,
          fill: fill ? `${colour(variable)}22` : undefined,
          points: { show: false },
          spanGaps: false,
        })),
      ],
    };
  }

  /** Takes new columns: times, then one column a line. They are drawn soon, a few charts at a time. */
  set(data, from, until) {
    this.data = data;
    this.from = from;
    this.until = Math.max(until, from + 1);
    this.dirty = true;
    drawSoon();
  }

  setMark(t) {
    this.mark = t;
    this.moveMark();
  }

  moveMark() {
    if (!this.plot || this.mark === null || this.settings.small) return;
    const part = (this.mark - this.from) / (this.until - this.from);
    const hidden = part < 0 || part > 1;
    if (this.line.hidden !== hidden) this.line.hidden = hidden;
    if (!hidden) this.line.style.transform = `translateX(${Math.round(part * this.plot.over.clientWidth)}px)`;
  }

  scale() {
    this.plot.setScale("x", { min: this.from, max: this.until });
  }

  redraw() {
    this.dirty = false;
    if (!this.plot) return;
    this.plot.batch(() => {
      this.plot.setData(this.data, false);
      this.scale();
    });
  }

  close() {
    charts.delete(this);
    this.plot?.destroy();
  }
}

/** Draws at most two charts in a frame, so that no frame takes long. */
function drawSoon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    let room = 2;
    for (const chart of charts) {
      if (!chart.dirty) continue;
      if (room === 0) return drawSoon();
      chart.redraw();
      room -= 1;
    }
  });
}

/** Words and lines that say which line of a chart is which. */
export function chartKey(lines) {
  return el("span", { class: "keys" }, lines.map(({ label, variable, dash }) => {
    const sample = el("span", { class: dash ? "swatch dashed" : "swatch" });
    sample.style.color = `var(--${variable})`;
    return el("span", { class: "key" }, sample, label);
  }));
}
