// Enlarges the map: wheel, buttons, and dragging once it is enlarged.

import { button, el } from "../dom.js";

const MOST = 8;

/** Returns the buttons. `changed` is called after each change of `scene.zoom`. */
export function zoomable(canvas, scene, size, changed) {
  const set = (scale, x, y) => {
    const { width, height } = size();
    const kept = (value, length) => Math.min(0, Math.max(length * (1 - scale), value));
    scene.zoom = { scale, x: kept(x, width), y: kept(y, height) };
    canvas.classList.toggle("enlarged", scale > 1);
    changed();
  };
  const by = (factor, at) => {
    const { scale, x, y } = scene.zoom;
    const next = Math.min(MOST, Math.max(1, scale * factor));
    const part = next / scale;
    set(next, at.x - (at.x - x) * part, at.y - (at.y - y) * part);
  };
  const middle = () => ({ x: size().width / 2, y: size().height / 2 });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && scene.zoom.scale === 1 && event.deltaY > 0) return; // nothing to make smaller: the page scrolls
    event.preventDefault();
    by(event.deltaY < 0 ? 1.25 : 0.8, { x: event.offsetX, y: event.offsetY });
  }, { passive: false });
  listenToDrags(canvas, scene, set);
  return el("div", { class: "zoom" },
    button("+", "Enlarge the map", () => by(1.5, middle()), { "data-testid": "zoom-in" }),
    button("−", "Make the map smaller", () => by(1 / 1.5, middle()), { "data-testid": "zoom-out" }));
}

function listenToDrags(canvas, scene, set) {
  let from = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (scene.zoom.scale === 1) return;
    from = { x: event.clientX - scene.zoom.x, y: event.clientY - scene.zoom.y };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (from) set(scene.zoom.scale, event.clientX - from.x, event.clientY - from.y);
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (from = null));
}
