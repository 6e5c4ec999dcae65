// Places nodes whose positions are not known: on a circle at first, then by forces along their links, once.

/** Returns node → [x, y] within the unit square. `links`: pairs of names. The same input gives the same picture. */
export function layOut(nodes, links) {
  const count = nodes.length;
  const place = nodes.map((_, index) => {
    const angle = (2 * Math.PI * index) / Math.max(1, count) - Math.PI / 2;
    return [0.5 + 0.42 * Math.cos(angle), 0.5 - 0.42 * Math.sin(angle)];
  });
  const number = new Map(nodes.map((name, index) => [name, index]));
  const pairs = links.map(([a, b]) => [number.get(a), number.get(b)]).filter(([a, b]) => a !== undefined && b !== undefined && a !== b);
  if (pairs.length > 0) relax(place, pairs);
  return new Map(nodes.map((name, index) => [name, place[index]]));
}

function relax(place, pairs) {
  const count = place.length;
  const ideal = 0.8 / Math.sqrt(count);
  for (let round = 0; round < 250; round += 1) {
    const force = place.map(() => [0, 0]);
    for (let a = 0; a < count; a += 1) {
      for (let b = a + 1; b < count; b += 1) push(place, force, a, b, (distance) => (ideal * ideal) / distance);
    }
    for (const [a, b] of pairs) push(place, force, a, b, (distance) => -(distance * distance) / ideal);
    const heat = 0.1 * (1 - round / 250);
    for (let each = 0; each < count; each += 1) {
      const size = Math.hypot(...force[each]) || 1;
      const step = Math.min(size, heat) / size;
      place[each][0] += force[each][0] * step;
      place[each][1] += force[each][1] * step;
    }
  }
  for (const axis of [0, 1]) {
    const values = place.map((each) => each[axis]);
    const low = Math.min(...values);
    const high = Math.max(...values);
    for (const each of place) each[axis] = high > low ? 0.06 + (0.88 * (each[axis] - low)) / (high - low) : 0.5;
  }
}

function push(place, force, a, b, size) {
  const dx = place[a][0] - place[b][0];
  const dy = place[a][1] - place[b][1];
  const distance = Math.max(0.01, Math.hypot(dx, dy));
  const amount = size(distance) / distance;
  force[a][0] += dx * amount;
  force[a][1] += dy * amount;
  force[b][0] -= dx * amount;
  force[b][1] -= dy * amount;
}
