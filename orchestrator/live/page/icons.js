// Signs on buttons, drawn: not every machine has them in its fonts.

const SVG = "http://www.w3.org/2000/svg";
const PATHS = {
  play: "M5 3v14l12-7z",
  pause: "M4 3h4v14H4zM12 3h4v14h-4z",
  previous: "M4 3h3v14H4zM17 3v14L7 10z",
  next: "M13 3h3v14h-3zM3 3v14l10-7z",
};

export function icon(name) {
  const made = document.createElementNS(SVG, "svg");
  made.setAttribute("viewBox", "0 0 20 20");
  made.setAttribute("class", "icon");
  made.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  made.append(path);
  return made;
}
