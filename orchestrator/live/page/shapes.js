// Draws the shape of an operator: on the map's canvas, and as a small picture beside its name.

const SVG = "http://www.w3.org/2000/svg";

const known = new Map();

/** Corners of a shape around (0, 0) with radius 1; null for the circle. */
function corners(shape) {
  if (!known.has(shape)) known.set(shape, computed(shape));
  return known.get(shape);
}

function computed(shape) {
  const around = (count, turn) =>
    Array.from({ length: count }, (_, index) => {
      const angle = turn + (2 * Math.PI * index) / count;
      return [Math.cos(angle), Math.sin(angle)];
    });
  if (shape === "square") return around(4, Math.PI / 4).map(([x, y]) => [x * 1.15, y * 1.15]);
  if (shape === "diamond") return around(4, 0).map(([x, y]) => [x * 1.15, y * 1.15]);
  if (shape === "triangle") return around(3, -Math.PI / 2).map(([x, y]) => [x * 1.2, y * 1.2 + 0.15]);
  if (shape === "hexagon") return around(6, 0).map(([x, y]) => [x * 1.05, y * 1.05]);
  if (shape === "star") return around(10, -Math.PI / 2).map(([x, y], at) => (at % 2 ? [x * 0.5, y * 0.5] : [x * 1.2, y * 1.2]));
  return null;
}

export function traceShape(context, shape, x, y, radius) {
  const points = corners(shape);
  context.beginPath();
  if (points === null) {
    context.arc(x, y, radius, 0, 2 * Math.PI);
    return;
  }
  for (const [dx, dy] of points) context.lineTo(x + dx * radius, y + dy * radius);
  context.closePath();
}

export function shapeIcon(shape, variable) {
  const icon = document.createElementNS(SVG, "svg");
  icon.setAttribute("viewBox", "-1.4 -1.4 2.8 2.8");
  icon.setAttribute("class", "shape");
  icon.setAttribute("aria-hidden", "true");
  const points = corners(shape);
  const drawn = document.createElementNS(SVG, points === null ? "circle" : "polygon");
  if (points === null) drawn.setAttribute("r", "1");
  else drawn.setAttribute("points", points.map((each) => each.map((at) => at.toFixed(3)).join(",")).join(" "));
  drawn.style.fill = `var(--${variable})`;
  icon.append(drawn);
  return icon;
}
