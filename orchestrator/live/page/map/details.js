// Says what is known about a thing on the map: a node, a replica, a stream's hop, a flow, a link that events go over, a radio link.

import { el } from "../dom.js";
import { routeAt } from "../model/paths.js";
import { ago, bits, brief, bytes, delay, fixed, moment, number, percent, span, text } from "../model/words.js";
import { shapeIcon } from "../shapes.js";
import { operatorStyle } from "../theme.js";
import { hasSignals, valueOf } from "./link_pairs.js";

/** Returns the contents of the box of details. */
export function describe(run, scene, hit) {
  const makers = { node, replica, hop, flow, carry, link };
  return makers[hit.kind](run, scene, hit);
}

function title(words, icon = null) {
  return el("h3", {}, icon, words);
}

function facts(pairs) {
  const known = pairs.filter((pair) => pair && pair[1] !== null && pair[1] !== "");
  if (known.length === 0) return null;
  return el("dl", {}, known.map(([name, value]) => [el("dt", { text: name }), el("dd", { text: value })]));
}

function stateWords(run, name) {
  const state = run.nodeState(name);
  if (state.state === "unknown") return "not reported yet";
  return `${state.state} for ${span(run.age(state.since))}`;
}

function node(run, scene, hit) {
  const state = run.nodeState(hit.node);
  const { history, t } = run;
  const clock = history.at("", "clock", hit.node, t);
  const record = history.series("", "record", hit.node);
  const kept = record.at(t);
  const load = history.at("", "host", hit.node, t);
  const position = history.at("", "position", hit.node, t);
  const links = [];
  for (const pair of scene.pairs.renew().values()) {
    if (pair.a !== hit.node && pair.b !== hit.node) continue;
    const etx = [0, 1].map((way) => valueOf(pair, way, "etx", t)).filter((each) => each !== null);
    if (etx.length > 0) links.push([pair.a === hit.node ? pair.b : pair.a, Math.max(...etx)]);
  }
  links.sort((a, b) => a[1] - b[1]);
  return [
    title(hit.node),
    state.well ? null : el("p", { class: "why bad", text: `${state.state} since ${moment(state.since)}${state.why ? `: ${state.why}` : ""}` }),
    facts([
      ["state", stateWords(run, hit.node)],
      state.well && state.why ? ["note", state.why] : null,
      position ? ["position", `${fixed(position[0], 0)} m, ${fixed(position[1], 0)} m`] : null,
      ["links", links.length > 0 ? `${links.length}; best ${links.slice(0, 3).map(([to, etx]) => `${to} ${fixed(etx, 2)}`).join(", ")}` : "none"],
      clock ? ["clock", `${fixed(clock.offset_ms, 2)} ms off, ± ${fixed(clock.uncertainty_ms, 2)} ms`] : null,
      kept ? ["records", recordWords(run, kept, record.since(t))] : null,
      load ? ["load", `${load.delay_ms === undefined ? `waited ${percent(load.waited)}` : `waits of ${fixed(load.delay_ms, 2)} ms`}, late ${fixed(load.late_ms, 1)} ms`] : null,
    ]),
    (run.hosted.get(hit.node) ?? []).map(({ app, replica: each }) => el("p", { class: "row" }, icon(app, each), `${each.id}: ${replicaWords(run, app, each.id)}`)),
  ];
}

function recordWords(run, kept, since) {
  const refused = number(kept.refused) ? `, ${brief(kept.refused)} not believed` : "";
  return `${brief(kept.records)} (${bytes(kept.bytes)})${refused}; counted ${ago(run.age(since))}`;
}

function icon(app, each) {
  const style = operatorStyle(app.view.order.get(each.operator) ?? 0);
  return shapeIcon(style.shape, style.variable);
}

function replicaWords(run, app, id) {
  const rate = run.history.at(app.name, "rate", id, run.t);
  const queue = run.history.at(app.name, "queue", id, run.t);
  const parts = [];
  if (rate) parts.push(`${brief(rate.in)} in, ${brief(rate.out)} out a second`);
  if (queue) parts.push(`${brief(queue.in)} wait`);
  return parts.join("; ") || "nothing reported yet";
}

function replica(run, scene, hit) {
  const each = hit.app.view.byId.get(hit.id);
  const { history, t } = run;
  const rates = history.series(hit.app.name, "rate", hit.id);
  const rate = rates.at(t);
  const queue = history.at(hit.app.name, "queue", hit.id, t);
  const latency = history.at(hit.app.name, "latency", hit.id, t);
  const state = run.nodeState(each.node);
  return [
    title(`${hit.id} on ${each.node}`, icon(hit.app, each)),
    state.well ? null : el("p", { class: "why bad", text: `${each.node} is ${state.state} since ${moment(state.since)}${state.why ? `: ${state.why}` : ""}` }),
    facts([
      rate ? ["rate", `${brief(rate.in)} in, ${brief(rate.done)} done, ${brief(rate.out)} out a second`] : ["rate", "nothing reported yet"],
      rate && number(rate.bytes) ? ["sends", bits(rate.bytes * 8)] : null,
      rate && number(rate.dropped) ? ["dropped", `${brief(rate.dropped)} a second`] : null,
      queue ? ["queue", `${brief(queue.in)} wait for work, ${brief(queue.out)} to be sent`] : null,
      latency ? ["latency", `p50 ${delay(latency.p50)}, p95 ${delay(latency.p95)}`] : null,
      rate ? ["reported", ago(run.age(rates.since(t)))] : null,
    ]),
    (hit.app.view.downstream.get(each.operator) ?? []).map((operator) => {
      const route = routeAt(history, hit.app.name, hit.id, operator, t);
      return route.value ? decision(run, hit.app, route) : null;
    }),
  ];
}

function hop(run, scene, hit) {
  const { from, to, key, share } = hit.what;
  const route = routeAt(run.history, hit.app.name, from, key.slice(key.indexOf(">") + 1), run.t);
  return [
    title(`${from} → ${to}`),
    el("p", { class: "soft", text: `${hit.app.name}${share < 1 ? `, ${percent(share)} of the stream` : ""}` }),
    route.value ? decision(run, hit.app, route) : el("p", { text: "There is no such route any more." }),
  ];
}

/** Why a replica sends to the one it does, and what each cost. */
function decision(run, app, route) {
  const { value } = route;
  const costs = Array.isArray(value.costs) ? value.costs.slice(0, 12) : [];
  const last = lastSwitch(run, app, route);
  return el("div", { class: "decision" },
    el("p", {}, el("strong", { text: value.to ? `to ${text(value.to, 60)}` : "no route" }), ` since ${moment(route.t)}, ${ago(run.age(route.t))}`),
    el("p", { class: "why", text: text(value.why) || "No reason was recorded." }),
    costs.length > 0 ? el("table", {},
      el("thead", {}, el("tr", {}, ["replica", "node", "link", "to the sinks"].map((name) => el("th", { text: name })))),
      el("tbody", {}, costs.map((cost) => {
        const chosen = cost.to === value.to || Boolean(value.shares?.[cost.to]);
        return el("tr", { class: chosen ? "chosen" : "" },
          el("td", { text: `${chosen ? "▸ " : ""}${text(cost.to, 60)}` }),
          el("td", { text: app.view.byId.get(cost.to)?.node ?? "?" }),
          el("td", { text: fixed(cost.link, 2) }),
          el("td", { text: fixed(cost.path, 2) }));
      }))) : null,
    last && last.t !== route.t ? el("p", { class: "soft", text: `Last switch ${ago(run.age(last.t))}, from ${text(last.value.old, 60) || "no route"}: ${text(last.value.why)}` }) : null);
}

function lastSwitch(run, app, route) {
  return run.marks.recentSwitches(app.name, run.t, 60).find(({ value }) => `${value.from}>${value.downstream}` === route.key) ?? null;
}

function flow(run, scene, hit) {
  const { name, from, to, protocol } = hit.what;
  const value = run.history.at(hit.app.name, "flow", name, run.t);
  return [
    title(`${name}: ${from} → ${to}`),
    facts([
      ["protocol", text(protocol, 20)],
      ["sent", value ? bits(value.sent) : "–"],
      ["received", value ? bits(value.received) : "–"],
      ["lost", value ? percent(value.lost) : "–"],
      ["delay", value ? `${delay(value.delay)}, jitter ${delay(value.jitter)}` : "–"],
    ]),
  ];
}

function carry(run, scene, hit) {
  const { from, to, pushed, pulled, down } = hit.what;
  const value = run.history.at(hit.app.name, "carried", `${from}>${to}`, run.t);
  const asked = run.history.at(hit.app.name, "carried", `${to}>${from}`, run.t);
  const names = (list) => (Array.isArray(list) ? list.map((each) => text(each, 60)).join(", ") : "");
  return [
    title(`${from} → ${to}`),
    facts([
      ["pushed", names(pushed)],
      ["pulled", names(pulled)],
      ["connected", value ? `${value.up ? "yes" : "no"}, for ${span(run.age(number(value.since) ?? 0))}` : "–"],
      ["down, as planned", number(down) === null ? null : span(down)],
      ["sent", value ? `${brief(value.instances)} instances, ${bytes(value.bytes)}` : "–"],
      ["asked for", asked ? `${brief(asked.requests)} times` : null],
      ["waiting", value ? `${brief(value.waiting)} messages, ${bytes(value.waiting_bytes)}` : "–"],
    ]),
  ];
}

function link(run, scene, hit) {
  const { pair } = hit;
  const { t } = run;
  const signals = hasSignals(run.history);
  const row = (way, from, to) => {
    const since = pair.link[way]?.since(t);
    return el("tr", {},
      el("td", { text: `${from} → ${to}` }),
      el("td", { text: fixed(valueOf(pair, way, "etx", t), 2) }),
      signals ? el("td", { text: fixed(valueOf(pair, way, "snr", t), 1) }) : null,
      el("td", { text: since === undefined ? "–" : ago(run.age(since)) }));
  };
  return [
    title(`Link ${pair.a} – ${pair.b}`),
    el("table", {},
      el("thead", {}, el("tr", {}, ["direction", "ETX", signals ? "SNR, dB" : null, "changed"].filter(Boolean).map((name) => el("th", { text: name })))),
      el("tbody", {}, row(0, pair.a, pair.b), row(1, pair.b, pair.a))),
    el("p", { class: "soft", text: run.head.links === "truth" ? "As the radio's model has it." : "As routing sees it." }),
  ];
}
