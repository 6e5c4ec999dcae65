// Follows a query's stream from its sources to its sinks, as the routes were at a moment.

import { number } from "./words.js";

/** Returns the parts of a query's view that can be used, by name. */
export function readView(view) {
  const list = (value) => (Array.isArray(value) ? value : []);
  const operators = list(view?.operators).filter((each) => typeof each?.name === "string");
  const replicas = list(view?.replicas).filter((each) => typeof each?.id === "string");
  const downstream = new Map(operators.map((each) => [each.name, []]));
  for (const edge of list(view?.edges)) downstream.get(edge?.[0])?.push(edge[1]);
  return {
    operators,
    replicas,
    downstream,
    byId: new Map(replicas.map((each) => [each.id, each])),
    order: new Map(operators.map((each, index) => [each.name, index])),
    role: new Map(operators.map((each) => [each.name, each.role])),
    pictures: view?.pictures === true,
    flows: list(view?.flows).filter((each) => typeof each?.name === "string"),
    patterns: list(view?.patterns).filter((each) => typeof each?.name === "string"),
    situations: list(view?.situations).filter((each) => typeof each?.name === "string"),
    brokers: list(view?.brokers).filter((each) => typeof each === "string"),
    areas: list(view?.areas).map(readArea).filter((each) => each !== null),
    carriers: list(view?.carriers).filter((each) => typeof each?.from === "string" && typeof each?.to === "string"),
  };
}

const CORNERS = 1000;

/** {broker, corners: [[x, y]]} of what a broker serves; null if it is none. */
function readArea(area) {
  const corners = Array.isArray(area?.corners) ? area.corners.slice(0, CORNERS) : [];
  const known = corners.every((each) => Array.isArray(each) && number(each[0]) !== null && number(each[1]) !== null);
  return typeof area?.broker === "string" && known && corners.length >= 3 ? { broker: area.broker, corners } : null;
}

/** The route of one replica to one downstream operator: {key, t, value}; value is null if none is known. */
export function routeAt(history, app, from, downstream, t) {
  const key = `${from}>${downstream}`;
  const series = history.series(app, "route", key);
  const index = series.index(t);
  return { key, downstream, t: series.times[index], value: series.values[index] ?? null };
}

/** Every hop that carries the stream: {from, to, share, key, t, value}, sources first. */
export function activeHops(history, app, view, t) {
  const hops = [];
  const seen = new Set();
  const waiting = view.replicas.filter((each) => view.role.get(each.operator) === "source");
  for (const each of waiting) seen.add(each.id);
  while (waiting.length > 0) {
    const replica = waiting.shift();
    for (const operator of view.downstream.get(replica.operator) ?? []) {
      const route = routeAt(history, app, replica.id, operator, t);
      for (const [to, share] of targets(route.value)) {
        hops.push({ from: replica.id, to, share, key: route.key, t: route.t, value: route.value });
        const next = view.byId.get(to);
        if (next && !seen.has(to)) {
          seen.add(to);
          waiting.push(next);
        }
      }
    }
  }
  return hops;
}

/** The main way from each source: [{steps: [replica], stopped: route | null}]. A way ends where no route is. */
export function mainPaths(history, app, view, t, most = 8) {
  const paths = [];
  const follow = (replica, steps) => {
    if (paths.length >= most) return;
    const next = view.downstream.get(replica.operator) ?? [];
    if (next.length === 0) paths.push({ steps, stopped: null });
    for (const operator of next) {
      const route = routeAt(history, app, replica.id, operator, t);
      const to = view.byId.get(route.value?.to);
      if (!to || steps.includes(to)) paths.push({ steps, stopped: { ...route, from: replica.id } });
      else follow(to, [...steps, to]);
    }
  };
  for (const each of view.replicas) {
    if (view.role.get(each.operator) === "source") follow(each, [each]);
  }
  return paths;
}

/** Where a route leads: [[replica, share]], several where output is divided. */
export function targets(value) {
  if (!value) return [];
  const shares = value.shares && typeof value.shares === "object" ? Object.entries(value.shares) : [];
  const used = shares.filter(([, share]) => (number(share) ?? 0) > 0);
  if (used.length > 0) return used;
  return typeof value.to === "string" ? [[value.to, 1]] : [];
}

/** Why a route is as it is, so that it can follow "because". The words are those of `rove explain`. */
export function because(why, downstream) {
  const said = typeof why === "string" && why ? why : "no reason was recorded";
  return said.startsWith(`${downstream}/`) ? said : said.slice(0, 1).toLowerCase() + said.slice(1);
}
