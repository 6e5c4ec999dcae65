// Keys, and the overlay that lists them.

import { button, el } from "./dom.js";

const KEYS = [
  ["Space", "play or pause"],
  ["← →", "one second back or on; with Shift ten"],
  ["[ ]", "previous or next switch or fault"],
  ["Home End", "beginning, end (or live)"],
  ["+ −", "faster, slower"],
  ["L", "back to live"],
  ["E", "links by ETX or SNR"],
  ["Esc", "close what is open"],
  ["?", "this list"],
];
const OWN = new Set(["INPUT", "SELECT", "TEXTAREA"]);

/** `actions`: jump(forward), measure(), escape(). */
export function listenToKeys(clock, actions) {
  const dialog = helpDialog();
  const does = {
    " ": () => clock.toggle(),
    ArrowLeft: (event) => clock.seek(clock.t - (event.shiftKey ? 10 : 1)),
    ArrowRight: (event) => clock.seek(clock.t + (event.shiftKey ? 10 : 1)),
    Home: () => clock.seek(0),
    End: () => clock.toLive(),
    "+": () => clock.faster(1),
    "=": () => clock.faster(1),
    "-": () => clock.faster(-1),
    l: () => clock.toLive(),
    L: () => clock.toLive(),
    "[": () => actions.jump(false),
    "]": () => actions.jump(true),
    e: () => actions.measure(),
    E: () => actions.measure(),
    "?": () => (dialog.open ? dialog.close() : dialog.showModal()),
    Escape: () => actions.escape(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = does[event.key];
    if (!action || (dialog.open && event.key !== "?")) return;
    const target = event.target;
    const slider = target instanceof HTMLInputElement && target.type === "range";
    if (OWN.has(target.tagName) && !slider) return;
    if (event.key === " " && target instanceof HTMLButtonElement) return; // space presses the button
    event.preventDefault();
    action(event);
  });
  return dialog;
}

function helpDialog() {
  const dialog = el("dialog", { class: "help", "aria-label": "Keys", "data-testid": "help" });
  dialog.append(
    el("h2", { text: "Keys" }),
    el("dl", {}, KEYS.map(([keys, words]) => [el("dt", {}, keys.split(" ").map((key) => el("kbd", { text: key }))), el("dd", { text: words })])),
    el("h2", { text: "On the map" }),
    el("p", { text: "A thick line is where a stream goes now, a filled badge a replica that it passes. A ring marks a switch just made; the dotted line is where the stream went before. Point at or tap on anything to see more." }),
    button("Close", "Close", () => dialog.close()),
  );
  document.body.append(dialog);
  return dialog;
}
