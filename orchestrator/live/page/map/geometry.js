// Curves of streams and distances to them.

const SAMPLES = 14;

/** A curve from a to b that bends to its left, so that both directions can be seen. Ends keep off the nodes. */
export function bend(a, b, strength, gap) {
  const dx = b.x - a.x;
  const dy = b.y - a.y;
  const length = Math.hypot(dx, dy);
  if (length < 1) return loop(a, strength);
  const offset = Math.min(46, 14 + length * 0.14) + strength;
  const control = { x: (a.x + b.x) / 2 + (dy / length) * offset, y: (a.y + b.y) / 2 - (dx / length) * offset };
  return { from: towards(a, control, gap), control, to: towards(b, control, gap + 4), loop: false };
}

/** Both replicas are on one node. */
function loop(a, strength) {
  const size = 26 + strength;
  return {
    from: { x: a.x - 7, y: a.y - 10 },
    control: { x: a.x, y: a.y - size * 2 },
    to: { x: a.x + 7, y: a.y - 11 },
    loop: true,
  };
}

function towards(from, to, distance) {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const part = Math.min(0.45, distance / length);
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}

export function pointOn(curve, part) {
  const rest = 1 - part;
  const { from, control, to } = curve;
  return {
    x: rest * rest * from.x + 2 * rest * part * control.x + part * part * to.x,
    y: rest * rest * from.y + 2 * rest * part * control.y + part * part * to.y,
  };
}

export function directionOn(curve, part) {
  const { from, control, to } = curve;
  const x = 2 * (1 - part) * (control.x - from.x) + 2 * part * (to.x - control.x);
  const y = 2 * (1 - part) * (control.y - from.y) + 2 * part * (to.y - control.y);
  return Math.atan2(y, x);
}

export function samples(curve) {
  return Array.from({ length: SAMPLES + 1 }, (_, index) => pointOn(curve, index / SAMPLES));
}

export function distanceToSegment(x, y, a, b) {
  const dx = b.x - a.x;
  const dy = b.y - a.y;
  const length = dx * dx + dy * dy;
  const part = length === 0 ? 0 : Math.min(1, Math.max(0, ((x - a.x) * dx + (y - a.y) * dy) / length));
  return Math.hypot(x - a.x - dx * part, y - a.y - dy * part);
}

/** Whether (x, y) is near the box around a and b: a cheap test before the exact one. */
export function nearBox(x, y, a, b, reach) {
  return (
    x > Math.min(a.x, b.x) - reach && x < Math.max(a.x, b.x) + reach &&
    y > Math.min(a.y, b.y) - reach && y < Math.max(a.y, b.y) + reach
  );
}
