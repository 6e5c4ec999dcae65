// Interests that move, and the areas of brokers, on the map: where they are at a moment.

import { number } from "../model/words.js";
import { streamVariable } from "../theme.js";

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
