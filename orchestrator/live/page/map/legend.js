// Says what lines and shapes on the map mean, and lets one choose what links show.

import { el, setHidden } from "../dom.js";
import { shapeIcon } from "../shapes.js";
import { operatorStyle, streamVariable } from "../theme.js";
import { CLASSES, LEGENDS, hasSignals } from "./link_pairs.js";

const SVG = "http://www.w3.org/2000/svg";
const DASHES = { good: "", fair: "7 4", poor: "2 4" };

function line(variable, dash, width) {
  const icon = document.createElementNS(SVG, "svg");
  icon.setAttribute("viewBox", "0 0 28 8");
  icon.setAttribute("class", "line");
  icon.setAttribute("aria-hidden", "true");
  const drawn = document.createElementNS(SVG, "path");
  drawn.setAttribute("d", "M1 4H27");
  drawn.setAttribute("stroke-dasharray", dash);
  drawn.setAttribute("stroke-width", String(width));
  drawn.style.stroke = `var(--${variable})`;
  icon.append(drawn);
  return icon;
}

function ring(variable) {
  const icon = document.createElementNS(SVG, "svg");
  icon.setAttribute("viewBox", "0 0 16 16");
  icon.setAttribute("class", "shape");
  icon.setAttribute("aria-hidden", "true");
  const drawn = document.createElementNS(SVG, "circle");
  for (const [name, value] of Object.entries({ cx: 8, cy: 8, r: 6.5, "fill-opacity": 0.15, "stroke-width": 2 })) drawn.setAttribute(name, String(value));
  drawn.style.stroke = drawn.style.fill = `var(--${variable})`;
  icon.append(drawn);
  return icon;
}

/** Returns its element, and what renews it: links by SNR can be chosen once one is known. */
export function mapLegend(run, choose) {
  const links = el("span", { class: "keys" });
  const show = (measure) => {
    const words = LEGENDS[measure];
    links.replaceChildren(...CLASSES.map((name) => el("span", { class: "key" }, line(`link-${name}`, DASHES[name], 2), words[name])));
    for (const each of buttons) each.setAttribute("aria-pressed", String(each.dataset.measure === measure));
  };
  const buttons = Object.entries(LEGENDS).map(([measure, { title }]) =>
    el("button", {
      type: "button",
      "data-measure": measure,
      "data-testid": `measure-${measure}`,
      "aria-label": `Colour links by ${title}`,
      text: title,
      hidden: measure === "snr",
      onclick: () => {
        show(measure);
        choose(measure);
      },
    }));
  show("etx");
  const streams = run.apps.map((app) => {
    if (app.view.situations.length > 0) {
      return el("span", { class: "key" }, ring(streamVariable(app.index)), run.apps.length > 1 ? `interests of ${app.name}` : "interest");
    }
    return el("span", { class: "key" }, line(streamVariable(app.index), app.view.flows.length > 0 ? "3 5" : "11 4", app.view.flows.length > 0 ? 3 : 5), run.apps.length > 1 ? app.name : "stream");
  });
  if (run.interests.some((app) => app.view.areas.length > 0)) streams.push(el("span", { class: "key" }, line("soft", "3 5", 1), "area of a broker"));
  const named = new Map(run.queries.flatMap((app) => app.view.operators.map((operator, index) => [`${index} ${operator.name}`, [operator.name, index]])));
  const operators = [...named.values()].map(([name, index]) => {
    const style = operatorStyle(index);
    return el("span", { class: "key" }, shapeIcon(style.shape, style.variable), name);
  });
  const element = el("div", { class: "legend" },
    el("span", { class: "toggle", role: "group", "aria-label": "Links by" }, buttons), links,
    el("span", { class: "keys" }, streams, operators));
  return { element, renew: () => setHidden(buttons.find((each) => each.dataset.measure === "snr"), !hasSignals(run.history)) };
}
