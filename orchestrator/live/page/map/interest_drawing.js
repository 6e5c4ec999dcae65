// Draws interests that move, and the areas of brokers, onto the map.

import { colour } from "../theme.js";
import { SMALL } from "./labels.js";

export function drawAreas(context, scene) {
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.setLineDash([3, 5]);
  for (const { points } of scene.areas) {
    context.beginPath();
    points.forEach(({ x, y }, index) => (index === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
    context.closePath();
    context.stroke();
  }
  context.setLineDash([]);
}

export function drawInterests(context, scene) {
  for (const each of scene.interests) {
    context.beginPath();
    if (each.shape === "square") context.rect(each.x - each.radius, each.y - each.radius, 2 * each.radius, 2 * each.radius);
    else context.arc(each.x, each.y, each.radius, 0, 2 * Math.PI);
    context.fillStyle = colour(each.variable);
    context.globalAlpha = 0.09;
    context.fill();
    context.globalAlpha = 0.9;
    context.strokeStyle = colour(each.variable);
    context.lineWidth = 2;
    context.setLineDash(each.dash);
    context.stroke();
    context.setLineDash([]);
    if (each.focal) drawWayToObject(context, each);
    context.globalAlpha = 1;
  }
}

/** From the middle of an interest to the object that it follows, which moves on until the next switch. */
function drawWayToObject(context, { x, y, focal }) {
  context.globalAlpha = 0.7;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x - 4, y);
  context.lineTo(x + 4, y);
  context.moveTo(x, y - 4);
  context.lineTo(x, y + 4);
  context.moveTo(x, y);
  context.lineTo(focal.x, focal.y);
  context.stroke();
}

/** Names of interests below their upper edge, or at the border of the map if that is outside. */
export function drawInterestNames(context, scene, width, height) {
  context.font = SMALL;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  for (const each of scene.interests) {
    const x = Math.min(Math.max(each.x, 30), width - 30);
    const y = Math.min(Math.max(each.y - each.radius + 12, 12), height - 12);
    context.lineWidth = 4;
    context.strokeStyle = colour("paper");
    context.strokeText(each.name.slice(0, 40), x, y);
    context.fillStyle = colour("ink");
    context.fillText(each.name.slice(0, 40), x, y);
  }
  context.textAlign = "left";
}
