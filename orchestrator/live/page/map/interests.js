// Interests that move, and the areas of brokers, on the map: where they are at a moment, and how they are drawn.

import { number } from "../model/words.js";
import { colour, streamVariable } from "../theme.js";
import { SMALL } from "./labels.js";

const MOST = 100;
const DASHES = [[], [9, 5], [2, 4]]; // queries of one application have its colour; the first three differ in their lines

/** {app, name, shape, x, y, radius, variable, focal} on the screen of each query that has an interest now. */
export function findInterests(run, scene, t) {
  if (!scene.mapped) return [];
  const found = [];
  for (const app of run.interests) {
    app.view.situations.slice(0, MOST).forEach((query, index) => {
      const at = run.history.at(app.name, "region", query.name, t);
      const [x, y, radius] = [number(at?.x), number(at?.y), number(at?.radius)];
      if (x === null || y === null || !(radius > 0)) return;
      found.push({
        app,
        name: query.name,
        shape: query.shape === "square" ? "square" : "circle",
        ...scene.onScreen(x, y),
        radius: radius * scene.frame.scale,
        dash: DASHES[index % DASHES.length],
        variable: streamVariable(app.index),
        focal: scene.byName.get(query.focal) ?? null,
      });
    });
  }
  return found;
}

/** {name, points} on the screen of what each broker serves. */
export function findAreas(run, scene) {
  if (!scene.mapped) return [];
  const shown = run.interests.flatMap((app) => app.view.areas.slice(0, MOST));
  return shown.map(({ broker, corners }) => ({ name: broker, points: corners.map(([x, y]) => scene.onScreen(x, y)) }));
}

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
