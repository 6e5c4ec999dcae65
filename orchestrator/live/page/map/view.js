// The map: a canvas, what the pointer finds on it, and the box that says more.

import { el, button, setHidden } from "../dom.js";
import { ago, span } from "../model/words.js";
import { onTheme, stillness } from "../theme.js";
import { describe } from "./details.js";
import { drawFrame, drawLabels, drawLinks, drawNodes, drawStreams, drawSwitches } from "./draw.js";
import { samples } from "./geometry.js";
import { drawAreas, drawInterestNames, drawInterests } from "./interest_drawing.js";
import { findHit, onMap, sameHit } from "./hits.js";
import { Labels } from "./labels.js";
import { mapLegend } from "./legend.js";
import { Scene } from "./scene.js";
import { zoomable } from "./zoom.js";

const ARRANGE_MS = 250;

export class MapView {
  constructor(run) {
    this.run = run;
    this.scene = new Scene(run);
    this.labels = new Labels();
    this.measure = "etx";
    this.dirty = true;
    this.arranged = 0;
    this.hover = null;
    this.aimed = null; // what the pointer was at when it or the map's zoom last moved
    this.pinned = null;
    this.pointer = null;
    this.size = { width: 0, height: 0 };
    this.canvas = el("canvas", { "aria-hidden": "true", "data-testid": "map" });
    this.context = this.canvas.getContext("2d");
    this.box = el("div", { class: "details", role: "region", "aria-label": "Details", hidden: true, "data-testid": "details" });
    const buttons = zoomable(this.canvas, this.scene, () => this.size, () => {
      this.arranged = 0;
      this.dirty = true;
      if (this.pointer) this.pointer.moved = true;
    });
    this.stage = el("div", { class: "stage" }, this.canvas, buttons, this.box);
    this.legend = mapLegend(run, (measure) => {
      this.measure = measure;
      this.dirty = true;
    });
    this.element = el("section", { class: "panel map", "aria-label": "Map" }, this.stage, this.legend.element);
    this.listen();
  }

  listen() {
    onTheme(() => (this.dirty = true));
    new ResizeObserver(() => this.resize()).observe(this.stage);
    const locate = (event) => {
      const edge = this.canvas.getBoundingClientRect();
      return { x: event.clientX - edge.left, y: event.clientY - edge.top, touch: event.pointerType !== "mouse", moved: true };
    };
    this.canvas.addEventListener("pointermove", (event) => {
      this.pointer = locate(event);
      this.dirty = true;
    });
    this.canvas.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "mouse") return;
      this.pointer = null;
      this.dirty = true;
    });
    this.canvas.addEventListener("click", (event) => {
      const at = locate(event);
      const found = findHit(this.scene, at.x, at.y, at.touch);
      this.pin(found && !sameHit(found, this.pinned) ? found : null, at);
    });
  }

  resize() {
    const width = Math.round(this.stage.clientWidth);
    const height = Math.round(this.stage.clientHeight);
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    if (width === this.size.width && height === this.size.height && ratio === this.size.ratio) return;
    this.size = { width, height, ratio };
    this.canvas.width = Math.max(1, width * ratio);
    this.canvas.height = Math.max(1, height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.arranged = 0;
    this.dirty = true;
  }

  /** For tests: a place on the canvas where the pointer finds something of a kind, or null. */
  where(kind, name = null) {
    const { streams, nodes, links, interests } = this.scene;
    const places = {
      node: () => nodes.filter((node) => node.name === name),
      hop: () => streams.filter((stream) => stream.what.key === name).flatMap((stream) => samples(stream.curve)),
      link: () => links.flat().map(({ a, b }) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 })),
    };
    if (kind === "interest") {
      const drawn = interests.find((each) => each.name === name);
      return drawn ? [drawn.x + drawn.radius, drawn.y] : null; // its right edge: the pointer finds what is in it
    }
    const fits = ({ x, y }) => {
      const hit = findHit(this.scene, x, y, false);
      return hit?.kind === kind && (name === null || (hit.node ?? hit.what?.key) === name);
    };
    const found = places[kind]().filter(fits);
    const middle = found[found.length >> 1]; // the ends of a hop are the first to get under a node that moves
    return middle ? [middle.x, middle.y] : null;
  }

  /** Keeps the box of details of something open. Without a place it opens beside the node. */
  pin(hit, at = null) {
    this.pinned = hit;
    this.pinnedAt = at;
    this.shown = null;
    this.dirty = true;
  }

  /** Draws the moment that is shown. Returns whether it drew. */
  draw(now) {
    const { width, height } = this.size;
    if (width < 10 || height < 10) return false;
    const { scene, context, run } = this;
    scene.renew(width, height, this.measure);
    if (now - this.arranged > ARRANGE_MS || !(run.clock.live || run.clock.playing)) {
      this.arranged = now;
      this.legend.renew();
      for (const node of scene.nodes) {
        node.ageWords = node.state.well ? "" : span(run.age(node.state.since));
        node.tag = "";
      }
      for (const each of scene.switched) {
        if (each.passed) (each.to ?? each.from).tag ||= `⇄ ${each.to ? "switched here" : "no route"} ${ago(each.age)}`;
      }
      const obstacles = scene.streams.flatMap((stream) => samples(stream.curve));
      this.labels.arrange(context, scene.nodes, obstacles, width, height);
    }
    this.hover = this.underPointer();
    const looked = this.pinned ?? this.hover;
    drawFrame(context, scene, width, height);
    drawAreas(context, scene);
    drawInterests(context, scene);
    drawLinks(context, scene);
    drawSwitches(context, scene, stillness());
    drawStreams(context, scene, stillness() ? 0 : (run.clock.t * 26) % 1000, this.chosenStream(looked));
    drawNodes(context, scene, looked?.node ? scene.byName.get(looked.node) : null);
    drawInterestNames(context, scene, width, height);
    drawLabels(context, scene);
    this.dirty = false;
    this.showDetails(looked, now);
    this.canvas.classList.toggle("pointing", this.hover !== null);
    return true;
  }

  /** While the pointer rests, what it was put on stays chosen: it may move on, and others may pass. */
  underPointer() {
    if (!this.pointer || this.pointer.touch) return null;
    const found = findHit(this.scene, this.pointer.x, this.pointer.y, false);
    if (this.pointer.moved) this.aimed = found;
    this.pointer.moved = false;
    return this.aimed && onMap(this.scene, this.aimed) ? this.aimed : found;
  }

  chosenStream(hit) {
    return this.scene.streams.find((stream) => sameHit(stream, hit)) ?? null;
  }

  showDetails(hit, now) {
    setHidden(this.box, !hit);
    if (!hit) {
      this.shown = null;
      return;
    }
    const same = this.shown && sameHit(this.shown.hit, hit) && this.shown.pinned === this.pinned;
    if (!same || now - this.shown.at > 300) {
      this.shown = { hit, at: now, pinned: this.pinned };
      this.box.replaceChildren(...[describe(this.run, this.scene, hit)].flat(3).filter(Boolean));
      if (this.pinned) this.box.append(button("×", "Close details", () => this.pin(null), { class: "close quiet" }));
      this.box.classList.toggle("pinned", this.pinned !== null);
    }
    this.moveDetails(hit);
  }

  moveDetails(hit) {
    const { width, height } = this.size;
    const node = hit.node ? this.scene.byName.get(hit.node) : null;
    const at = (this.pinned ? this.pinnedAt : this.pointer) ?? node ?? { x: 0, y: 0 };
    const wide = this.box.offsetWidth;
    const high = this.box.offsetHeight;
    const x = at.x + 18 + wide < width ? at.x + 18 : Math.max(4, at.x - 18 - wide);
    const y = Math.max(4, Math.min(at.y + 12, height - high - 4));
    this.box.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  }
}
