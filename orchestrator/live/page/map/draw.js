// Draws a scene on the canvas: links, streams, switches, nodes, labels.

import { traceShape } from "../shapes.js";
import { colour } from "../theme.js";
import { directionOn, pointOn } from "./geometry.js";
import { FONT, ROW, SMALL, TAG } from "./labels.js";
import { NODE_RADIUS } from "./scene.js";

const LINKS = [
  { name: "link-good", dash: [], width: 1.1 },
  { name: "link-fair", dash: [7, 4], width: 1.2 },
  { name: "link-poor", dash: [2, 4], width: 1.3 },
  { name: "link-unknown", dash: [1, 6], width: 1 },
];

export function drawFrame(context, scene, width, height) {
  context.clearRect(0, 0, width, height);
  if (!scene.mapped) return;
  const { frame } = scene;
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.strokeRect(frame.x + 0.5, frame.y + 0.5, frame.width, frame.height);
  const metres = scaleBar(Math.min(120, width / 4) / frame.scale);
  const long = metres * frame.scale;
  const x = width - 14 - long;
  const y = height - 9;
  context.strokeStyle = colour("soft");
  context.beginPath();
  context.moveTo(x, y - 3);
  context.lineTo(x, y);
  context.lineTo(x + long, y);
  context.lineTo(x + long, y - 3);
  context.stroke();
  context.font = SMALL;
  context.fillStyle = colour("soft");
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillText(`${metres} m`, x - 6, y - 1);
}

function scaleBar(most) {
  const size = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  return [5, 2, 1].map((each) => each * size).find((each) => each <= most) ?? 1;
}

export function drawLinks(context, scene) {
  for (let index = LINKS.length - 1; index >= 0; index -= 1) {
    const links = scene.links[index];
    if (links.length === 0) continue;
    const style = LINKS[index];
    context.beginPath();
    for (const { a, b } of links) {
      context.moveTo(a.x, a.y);
      context.lineTo(b.x, b.y);
    }
    context.setLineDash(style.dash);
    context.lineWidth = style.width;
    context.strokeStyle = colour(style.name);
    context.stroke();
  }
  context.setLineDash([]);
}

function trace(context, curve) {
  context.beginPath();
  context.moveTo(curve.from.x, curve.from.y);
  context.quadraticCurveTo(curve.control.x, curve.control.y, curve.to.x, curve.to.y);
}

function arrow(context, curve, part, size) {
  const at = pointOn(curve, part);
  const turn = directionOn(curve, part);
  context.save();
  context.translate(at.x, at.y);
  context.rotate(turn);
  context.beginPath();
  context.moveTo(size, 0);
  context.lineTo(-size * 0.8, -size * 0.85);
  context.lineTo(-size * 0.35, 0);
  context.lineTo(-size * 0.8, size * 0.85);
  context.closePath();
  context.fill();
  context.restore();
}

/** Flows, and links over which events go only when they are asked for. */
function isDotted(stream) {
  return stream.kind === "flow" || (stream.kind === "carry" && !(stream.what.pushed?.length > 0));
}

/** `moved`: how far the dashes have moved towards the sink; they stand still when time does. */
export function drawStreams(context, scene, moved, chosen) {
  context.lineCap = "round";
  for (const stream of scene.streams) {
    const thick = stream.kind === "flow" || stream.idle ? 2.5 : 2.5 + 2.5 * stream.share;
    trace(context, stream.curve);
    context.lineWidth = thick + 4;
    context.strokeStyle = stream === chosen ? colour("ink") : colour("paper");
    context.stroke();
    const tint = stream.broken ? colour("dead") : colour(stream.variable);
    context.globalAlpha = stream.broken ? 0.6 : stream.idle ? 0.3 : 0.45;
    context.lineWidth = thick;
    context.strokeStyle = tint;
    context.stroke();
    context.fillStyle = tint;
    if (stream.idle) {
      arrow(context, stream.curve, 0.98, thick + 4);
      context.globalAlpha = 1;
      continue;
    }
    context.globalAlpha = 1;
    context.setLineDash(stream.broken ? [2, 9] : isDotted(stream) ? [3, 8] : [11, 9]);
    context.lineDashOffset = stream.broken ? 0 : -moved;
    context.stroke();
    context.setLineDash([]);
    if (stream.broken) cross(context, pointOn(stream.curve, 0.55), 6, colour("bad"));
    else for (const part of stream.curve.loop ? [0.98] : [0.5, 0.98]) arrow(context, stream.curve, part, thick + 4);
  }
  context.lineCap = "butt";
}

export function drawSwitches(context, scene, still) {
  for (const each of scene.switched) {
    const fade = 1 - Math.min(1, each.part);
    const tint = colour("flash");
    context.globalAlpha = 1;
    if (each.passed && each.old && each.old !== each.to) {
      context.globalAlpha = 0.3 + 0.6 * fade;
      context.setLineDash([2, 5]);
      context.lineWidth = 2;
      context.strokeStyle = colour("soft");
      context.beginPath();
      context.moveTo(each.from.x, each.from.y);
      context.lineTo(each.old.x, each.old.y);
      context.stroke();
      context.setLineDash([]);
    }
    const target = each.to ?? each.from;
    if (!each.passed) continue;
    context.globalAlpha = 0.35 + 0.65 * fade;
    const rings = still ? [15] : [13 + 26 * ((each.part * 4) % 1), 15];
    for (const radius of rings) {
      context.beginPath();
      context.arc(target.x, target.y, radius, 0, 2 * Math.PI);
      context.strokeStyle = colour("flash-rim");
      context.lineWidth = 5;
      context.stroke();
      context.strokeStyle = tint;
      context.lineWidth = 3;
      context.stroke();
    }
    context.globalAlpha = 1;
  }
}

function cross(context, at, size, tint) {
  context.strokeStyle = tint;
  context.lineWidth = 3;
  context.beginPath();
  context.moveTo(at.x - size, at.y - size);
  context.lineTo(at.x + size, at.y + size);
  context.moveTo(at.x + size, at.y - size);
  context.lineTo(at.x - size, at.y + size);
  context.stroke();
}

export function drawNodes(context, scene, chosen) {
  for (const node of scene.nodes) {
    const well = node.state.well;
    const ended = node.state.state === "ended";
    const busy = node.badges.some((badge) => badge.active);
    const radius = node.badges.length > 0 ? NODE_RADIUS : NODE_RADIUS - 2;
    context.beginPath();
    context.arc(node.x, node.y, radius, 0, 2 * Math.PI);
    context.fillStyle = !well ? colour("dead") : ended ? colour("paper") : busy ? colour("ink") : colour("node");
    context.fill();
    context.lineWidth = node === chosen ? 4 : 2;
    context.strokeStyle = node === chosen ? colour("focus") : ended ? colour("soft") : colour("paper");
    context.stroke();
    if (!well) cross(context, node, 4, colour("paper"));
  }
}

export function drawLabels(context, scene) {
  context.textBaseline = "middle";
  for (const node of scene.nodes) {
    if (!node.label?.shown) continue;
    const x = node.x + node.label.dx;
    const y = node.y + node.label.dy;
    const right = node.label.side < 0;
    const edge = right ? x + node.label.width : x;
    const plain = node.badges.length === 0;
    const tint = !node.state.well ? colour("bad") : plain ? colour("soft") : colour("ink");
    context.textAlign = right ? "right" : "left";
    halo(context, node.note ? (right ? `${node.note}  ${node.name}` : `${node.name}  ${node.note}`) : node.name, edge, y + 8, plain && !node.note ? SMALL : FONT, tint);
    node.badges.forEach((badge, row) => drawBadge(context, badge, x, y + 16 + row * ROW, right, node));
    if (node.tag) drawTag(context, node.tag, x, y + node.label.height - TAG + 3, right, node.label.width);
  }
  context.textAlign = "left";
}

function drawBadge(context, badge, left, y, right, node) {
  const wide = badge.width;
  const x = right ? left + node.label.width - wide : left;
  badge.box = { x, y, width: wide, height: ROW - 2 };
  const tint = node.state.well ? colour(badge.style.variable) : colour("dead");
  pill(context, x, y, wide, ROW - 2, badge.active ? colour("paper") : colour("page"), badge.active ? colour(badge.rim ?? badge.style.variable) : colour("line"), badge.active ? 2 : 1);
  traceShape(context, badge.style.shape, x + 10, y + 9, 5);
  context.fillStyle = tint;
  context.globalAlpha = badge.active ? 1 : 0.7;
  context.fill();
  context.globalAlpha = 1;
  context.textAlign = "left";
  write(context, badge.words, x + 19, y + 9.5, SMALL, badge.active ? colour("ink") : colour("soft"));
}

/** Says in words that a switch was just made. */
function drawTag(context, words, left, y, right, width) {
  context.font = FONT;
  const wide = 14 + context.measureText(words).width;
  const x = right ? left + width - wide : left;
  pill(context, x, y, wide, TAG - 3, colour("flash"), colour("flash-rim"));
  write(context, words, x + 7, y + 10, FONT, colour("flash-ink"));
}

function pill(context, x, y, width, height, fill, stroke, line = 1) {
  context.beginPath();
  context.roundRect(x, y, width, height, height / 2);
  context.fillStyle = fill;
  context.fill();
  if (stroke) {
    context.lineWidth = line;
    context.strokeStyle = stroke;
    context.stroke();
  }
}

function write(context, words, x, y, font, tint) {
  context.font = font;
  context.textAlign = "left";
  context.fillStyle = tint;
  context.fillText(words, x, y);
}

/** Text with a rim of the background's colour, so that lines below do not make it hard to read. */
function halo(context, words, x, y, font, tint) {
  context.font = font;
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeStyle = colour("paper");
  context.strokeText(words, x, y);
  context.fillStyle = tint;
  context.fillText(words, x, y);
}
