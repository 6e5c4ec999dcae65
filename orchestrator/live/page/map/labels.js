// Finds a place for each node's name and badges where they cover no others. A label keeps its place while that is
// not much worse than the best one, so that labels do not jump about while nodes move.

import { NODE_RADIUS } from "./scene.js";

export const ROW = 20;
export const TAG = 22;
const SIDES = [
  [1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, 1], [1, -1], [-1, -1],
];

export const FONT = '600 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
export const SMALL = '500 11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

export class Labels {
  constructor() {
    this.widths = new Map();
    this.sides = new Map();
    this.placed = [];
  }

  measure(context, words, font) {
    const key = `${font}\u0000${words}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > 4000) this.widths.clear();
      context.font = font;
      width = context.measureText(words).width;
      this.widths.set(key, width);
    }
    return width;
  }

  /** Decides each label's side anew. `obstacles`: points that labels should not cover. */
  arrange(context, nodes, obstacles, width, height) {
    this.placed.length = 0;
    this.narrow = width < 480; // there is no room for the names of replicas that are not used
    const order = [...nodes].sort((a, b) => weight(b) - weight(a));
    for (const node of order) {
      this.size(context, node);
      const before = this.sides.get(node.name) ?? 0;
      let best = before;
      let least = this.cost(node, before, nodes, obstacles, width, height) * 0.7 - 30;
      for (let side = 0; side < SIDES.length; side += 1) {
        if (side === before) continue;
        const cost = this.cost(node, side, nodes, obstacles, width, height) + side * 2;
        if (cost < least) [best, least] = [side, cost];
      }
      this.sides.set(node.name, best);
      const box = boxOf(node, best);
      node.label = { ...box, dx: box.x - node.x, dy: box.y - node.y, side: SIDES[best][0] };
      node.label.shown = weight(node) > 0 || this.covered(box) < 25;
      if (node.label.shown) this.placed.push(box);
    }
  }

  size(context, node) {
    let wide = this.measure(context, node.name, FONT);
    node.note = note(node);
    if (node.note) wide += 6 + this.measure(context, node.note, SMALL);
    for (const badge of node.badges) {
      badge.words = this.narrow && !badge.active ? "" : badge.replica.id;
      badge.width = badge.words ? 24 + this.measure(context, badge.words, SMALL) : 20;
      wide = Math.max(wide, badge.width);
    }
    if (node.tag) wide = Math.max(wide, 14 + this.measure(context, node.tag, FONT));
    node.boxWidth = wide + 2;
    node.boxHeight = 15 + ROW * node.badges.length + (node.tag ? TAG : 0);
  }

  cost(node, side, nodes, obstacles, width, height) {
    const box = boxOf(node, side);
    let cost = this.covered(box) * 2;
    for (const other of nodes) {
      if (other !== node && inside(box, other.x, other.y, NODE_RADIUS)) cost += 220;
    }
    for (const point of obstacles) if (inside(box, point.x, point.y, 3)) cost += 26;
    const out = Math.max(0, -box.x, -box.y, box.x + box.width - width, box.y + box.height - height);
    return cost + out * 60;
  }

  covered(box) {
    let area = 0;
    for (const other of this.placed) {
      const wide = Math.min(box.x + box.width, other.x + other.width) - Math.max(box.x, other.x);
      const high = Math.min(box.y + box.height, other.y + other.height) - Math.max(box.y, other.y);
      if (wide > 0 && high > 0) area += wide * high;
    }
    return area;
  }
}

/** What stands beside the name of a node that does not work. */
function note(node) {
  return node.state && !node.state.well ? `${node.state.state} ${node.ageWords ?? ""}`.trim() : "";
}

function weight(node) {
  if (node.tag) return 4;
  if (node.badges.some((badge) => badge.active)) return 3;
  if (node.badges.length > 0) return 2;
  return node.state && !node.state.well ? 1 : 0;
}

function boxOf(node, side) {
  const [right, down] = SIDES[side];
  const gap = NODE_RADIUS + 4;
  const diagonal = right !== 0 && down !== 0;
  const reach = diagonal ? gap * 0.75 : gap;
  const x = right > 0 ? node.x + reach : right < 0 ? node.x - reach - node.boxWidth : node.x - node.boxWidth / 2;
  const y = down > 0 ? node.y + reach - 2 : down < 0 ? node.y - reach - node.boxHeight : node.y - 8;
  return { x, y, width: node.boxWidth, height: node.boxHeight };
}

function inside(box, x, y, reach) {
  return x > box.x - reach && x < box.x + box.width + reach && y > box.y - reach && y < box.y + box.height + reach;
}

