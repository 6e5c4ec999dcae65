// Finds what is under the pointer: a replica, a node, a stream or a link, the smallest first.

import { distanceToSegment, nearBox, samples } from "./geometry.js";

export function findHit(scene, x, y, touch) {
  const reach = touch ? 20 : 8;
  return badgeAt(scene, x, y) ?? nodeAt(scene, x, y, touch ? 22 : 13) ?? streamAt(scene, x, y, reach) ?? linkAt(scene, x, y, touch ? 12 : 5);
}

function badgeAt(scene, x, y) {
  for (const node of scene.nodes) {
    if (!node.label?.shown) continue;
    for (const badge of node.badges) {
      const box = badge.box;
      if (box && x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height) {
        return { kind: "replica", app: badge.app, id: badge.replica.id, node: node.name };
      }
    }
  }
  return null;
}

function nodeAt(scene, x, y, reach) {
  let found = null;
  let least = reach;
  for (const node of scene.nodes) {
    if (Math.abs(node.x - x) > reach || Math.abs(node.y - y) > reach) continue;
    const distance = Math.hypot(node.x - x, node.y - y);
    if (distance < least) [found, least] = [{ kind: "node", node: node.name }, distance];
  }
  return found;
}

function streamAt(scene, x, y, reach) {
  for (const stream of scene.streams) {
    const { from, control, to } = stream.curve;
    if (!nearBox(x, y, from, control, reach) && !nearBox(x, y, control, to, reach)) continue;
    const points = samples(stream.curve);
    for (let at = 1; at < points.length; at += 1) {
      if (distanceToSegment(x, y, points[at - 1], points[at]) < reach) {
        return { kind: stream.kind, app: stream.app, what: stream.what };
      }
    }
  }
  return null;
}

function linkAt(scene, x, y, reach) {
  let found = null;
  let least = reach;
  for (const links of scene.links) {
    for (const { pair, a, b } of links) {
      if (!nearBox(x, y, a, b, reach)) continue;
      const distance = distanceToSegment(x, y, a, b);
      if (distance < least) [found, least] = [{ kind: "link", pair }, distance];
    }
  }
  return found;
}

/** Whether two hits mean the same thing. */
export function sameHit(a, b) {
  if (!a || !b || a.kind !== b.kind) return a === b;
  if (a.kind === "node") return a.node === b.node;
  if (a.kind === "replica") return a.app === b.app && a.id === b.id;
  if (a.kind === "link") return a.pair === b.pair;
  return a.app === b.app && (a.what.key ?? a.what.name) === (b.what.key ?? b.what.name) && a.what.to === b.what.to;
}

/** Whether what was found earlier is still on the map. */
export function onMap(scene, hit) {
  if (hit.kind === "link") return scene.links.flat().some(({ pair }) => pair === hit.pair);
  return "node" in hit || scene.streams.some((stream) => sameHit(stream, hit));
}
