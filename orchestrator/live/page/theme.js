// Colours and shapes: light or dark, and palettes that can be told apart by those who see few colours.
// Nothing is said by colour alone: operators have shapes, links have dashes, states have words.

import { button } from "./dom.js";

const KEPT = "rove-theme";
const CHOICES = ["auto", "light", "dark"];
const SHAPES = ["circle", "square", "diamond", "triangle", "hexagon", "star"];
const listeners = [];
let colours = null;

export function onTheme(listener) {
  listeners.push(listener);
}

function renew() {
  colours = null;
  for (const listener of listeners) listener();
}

/** The colour of a CSS variable, as the canvas needs it. */
export function colour(name) {
  if (colours === null) colours = new Map();
  let found = colours.get(name);
  if (found === undefined) {
    found = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888";
    colours.set(name, found);
  }
  return found;
}

export function operatorStyle(index) {
  return { variable: `operator-${index % 7}`, shape: SHAPES[index % SHAPES.length] };
}

export function streamVariable(index) {
  return `stream-${index % 4}`;
}

export function startTheme() {
  let choice = "auto";
  try {
    choice = localStorage.getItem(KEPT) ?? "auto";
  } catch {
    // a browser that keeps nothing
  }
  apply(CHOICES.includes(choice) ? choice : "auto");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", renew);
}

function apply(choice) {
  document.documentElement.dataset.theme = choice;
  renew();
}

const SIGNS = { auto: "◐", light: "☀", dark: "☾" };

export function themeButton() {
  const made = button("", "", () => {
    const next = CHOICES[(CHOICES.indexOf(document.documentElement.dataset.theme) + 1) % CHOICES.length];
    try {
      localStorage.setItem(KEPT, next);
    } catch {
      // as above
    }
    apply(next);
    name();
  }, { class: "quiet", "data-testid": "theme" });
  const name = () => {
    const choice = document.documentElement.dataset.theme;
    made.textContent = SIGNS[choice];
    made.title = `colours: ${choice}`;
    made.setAttribute("aria-label", `Colours: ${choice}. Press to change`);
  };
  name();
  return made;
}

const still = matchMedia("(prefers-reduced-motion: reduce)");

/** Whether the reader wants nothing to move that need not. */
export function stillness() {
  return still.matches;
}
