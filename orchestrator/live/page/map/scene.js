// What is on the map at a moment: nodes with their places on the screen, links, streams, switches just made.

import { layOut } from "../model/layout.js";
import { positionAt } from "../model/motion.js";
import { flowState } from "../model/flows.js";
import { activeHops } from "../model/paths.js";
import { number } from "../model/words.js";
import { operatorStyle, streamVariable } from "../theme.js";
import { bend } from "./geometry.js";
import { findAreas, findInterests } from "./interests.js";
import { classOf, exists, LinkPairs } from "./link_pairs.js";

export const NODE_RADIUS = 8;
const BEHIND = 1; // seconds that positions run behind at the live edge, so that there is a next sample to move to
export const FLASH = 6; // seconds that a switch stays marked

export class Scene {
  constructor(run) {
    this.run = run;
    this.pairs = new LinkPairs(run.history);
    this.bounds = null;
    this.laidOut = null;
    this.zoom = { scale: 1, x: 0, y: 0 };
    this.nodes = run.nodes.map((name) => ({
      name,
      x: 0,
      y: 0,
      state: null,
      badges: (run.hosted.get(name) ?? []).map(({ app, replica }) => ({
        app,
        replica,
        style: operatorStyle(app.view.order.get(replica.operator) ?? 0),
        rim: run.queries.length > 1 ? streamVariable(app.index) : null, // of several queries, the stream's colour
        active: false,
      })),
    }));
    this.byName = new Map(this.nodes.map((node) => [node.name, node]));
    this.links = [[], [], [], []];
    this.streams = [];
    this.switched = [];
    this.interests = [];
    this.areas = [];
    const [width, height] = Array.isArray(run.head.area) ? run.head.area : [];
    if (number(width) > 0 && number(height) > 0) this.bounds = [0, 0, width, height];
    else run.history.onChange((_, app, channel, __, value) => channel === "position" && app === "" && this.widen(value));
  }

  widen(value) {
    const [x, y] = Array.isArray(value) ? value : [];
    if (number(x) === null || number(y) === null) return;
    const [left, top, right, bottom] = this.bounds ?? [x - 1, y - 1, x + 1, y + 1];
    this.bounds = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
  }

  /** Brings everything to the moment that is shown, for a screen of this size. */
  renew(width, height, measure) {
    const { run } = this;
    const t = run.t;
    this.place(width, height, run.clock.live ? run.clock.t - BEHIND : run.clock.t);
    for (const node of this.nodes) {
      node.state = run.nodeState(node.name, t);
      for (const badge of node.badges) badge.active = false;
    }
    this.findLinks(t, measure);
    this.findStreams(t);
    this.findSwitches();
    this.interests = findInterests(run, this, t);
    this.areas = findAreas(run, this);
  }

  /** Where a place is on the screen, in metres of the area; only once positions are known. */
  onScreen(x, y) {
    const [left, , , high] = this.bounds ?? [0, 0, 1, 1];
    const { frame } = this;
    return { x: frame.x + (x - left) * frame.scale, y: frame.y + (high - y) * frame.scale };
  }

  place(width, height, t) {
    const pad = { x: width < 500 ? 26 : 44, top: 26, bottom: 34 };
    const [left, low, right, high] = this.bounds ?? [0, 0, 1, 1];
    const scale = Math.min((width - 2 * pad.x) / (right - left), (height - pad.top - pad.bottom) / (high - low));
    const spare = (height - pad.top - pad.bottom - (high - low) * scale) / 2;
    const side = (width - (right - left) * scale) / 2;
    this.frame = { x: side, y: pad.top + spare, width: (right - left) * scale, height: (high - low) * scale, scale };
    const show = (node, x, y) => {
      node.x = side + (x - left) * scale;
      node.y = pad.top + spare + (high - y) * scale;
    };
    const positions = this.run.history.keys("", "position");
    let without = 0;
    for (const node of this.nodes) {
      const series = positions.get(node.name);
      const at = series ? positionAt(series, t) : null;
      node.placed = at !== null;
      if (at) show(node, at[0], at[1]);
      else without += 1;
    }
    this.mapped = without < this.nodes.length;
    if (without > 0) this.placeOthers(width, height, pad, without);
    this.enlarge();
  }

  /** Nodes whose positions are not known: along the lower edge if others have some, else as they are laid out. */
  placeOthers(width, height, pad, without) {
    const places = this.layout();
    let row = 0;
    for (const node of this.nodes) {
      if (node.placed) continue;
      if (this.mapped) {
        node.x = pad.x + (row += 1) * ((width - 2 * pad.x) / (without + 1));
        node.y = height - 16;
      } else {
        const [x, y] = places.get(node.name);
        node.x = pad.x + x * (width - 2 * pad.x);
        node.y = pad.top + y * (height - pad.top - pad.bottom);
      }
    }
  }

  enlarge() {
    const { scale, x, y } = this.zoom;
    if (scale === 1) return;
    for (const node of this.nodes) {
      node.x = node.x * scale + x;
      node.y = node.y * scale + y;
    }
    const { frame } = this;
    this.frame = { x: frame.x * scale + x, y: frame.y * scale + y, width: frame.width * scale, height: frame.height * scale, scale: frame.scale * scale };
  }

  /** Computed on a circle until links were seen for some seconds, then once by them. */
  layout() {
    const { history, clock } = this.run;
    const pairs = this.pairs.renew();
    if (this.laidOut === null || (!this.laidOut.byLinks && pairs.size > 0 && (history.last > 5 || !clock.goesOn))) {
      const links = [...pairs.values()].map((pair) => [pair.a, pair.b]);
      this.laidOut = { byLinks: links.length > 0, places: layOut(this.run.nodes, links) };
    }
    return this.laidOut.places;
  }

  findLinks(t, measure) {
    for (const list of this.links) list.length = 0;
    for (const pair of this.pairs.renew().values()) {
      if (!exists(pair, t)) continue;
      const a = this.byName.get(pair.a);
      const b = this.byName.get(pair.b);
      if (a && b) this.links[classOf(pair, measure, t)].push({ pair, a, b });
    }
  }

  findStreams(t) {
    this.streams.length = 0;
    for (const app of this.run.queries) {
      for (const hop of activeHops(this.run.history, app.name, app.view, t)) {
        const a = this.at(app, hop.from, true);
        const b = this.at(app, hop.to, true);
        if (a && b) this.add(app, "hop", hop, a, b, hop.share, !a.state.well || !b.state.well);
      }
    }
    for (const app of this.run.flows) {
      for (const flow of app.view.flows) {
        const value = this.run.history.at(app.name, "flow", flow.name, t);
        const a = this.byName.get(flow.from);
        const b = this.byName.get(flow.to);
        const state = value && a && b ? flowState(value) : "idle";
        if (state !== "idle") this.add(app, "flow", flow, a, b, 0.4, state === "lost");
      }
    }
    for (const app of this.run.detects) {
      for (const carrier of app.view.carriers) {
        const value = this.run.history.at(app.name, "carried", `${carrier.from}>${carrier.to}`, t);
        const a = this.byName.get(carrier.from);
        const b = this.byName.get(carrier.to);
        if (a && b) this.add(app, "carry", carrier, a, b, 0.2, false, value?.up !== true);
      }
    }
  }

  add(app, kind, what, a, b, share, broken, idle = false) {
    const curve = bend(a, b, app.index * 10, NODE_RADIUS + 3);
    this.streams.push({ app, kind, what, curve, share, broken, idle, variable: streamVariable(app.index) });
  }

  /** The node of a replica; marks the replica as one that the stream passes. */
  at(app, id, mark = false) {
    const replica = app.view.byId.get(id);
    const node = replica && this.byName.get(replica.node);
    if (node && mark) {
      const badge = node.badges.find((each) => each.app === app && each.replica === replica);
      if (badge) badge.active = true;
    }
    return node;
  }

  findSwitches() {
    this.switched.length = 0;
    const { marks, clock } = this.run;
    const window = FLASH * Math.max(1, clock.playing ? clock.speed / 3 : 1);
    const later = new Set(); // who switched again since then is marked once
    const { times, values } = marks.switches;
    for (let at = marks.switches.index(this.run.t); at >= 0 && times[at] > clock.t - window; at -= 1) {
      const value = values[at];
      const app = this.run.apps.find((each) => each.name === value.app);
      if (!app || this.switched.length >= 12) continue;
      const from = this.at(app, value.from);
      const key = `${value.app} ${value.from}>${value.downstream}`;
      if (!from || later.has(key)) continue;
      later.add(key);
      const passed = from.badges.some((badge) => badge.app === app && badge.replica.id === value.from && badge.active);
      const age = Math.max(0, clock.t - times[at]);
      this.switched.push({ app, value, from, passed, age, part: age / window, old: this.at(app, value.old), to: this.at(app, value.to) });
    }
  }
}
