// Makes elements. Text always goes in as text: names, reasons and errors come from nodes and are not trusted.

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name === "text") made.textContent = value;
    else if (name === "style") for (const [property, to] of Object.entries(value)) made.style.setProperty(property, to);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Sets the text only if it changed, so that nothing is laid out again for nothing. */
export function setText(node, text) {
  const said = text === null || text === undefined ? "" : String(text);
  if (node.textContent !== said) node.textContent = said;
}

export function setClass(node, name, on) {
  if (node.classList.contains(name) !== Boolean(on)) node.classList.toggle(name, Boolean(on));
}

export function setHidden(node, hidden) {
  if (node.hidden !== Boolean(hidden)) node.hidden = Boolean(hidden);
}

/** Replaces the children only if `signature` differs from the last one. Returns whether it did. */
export function refill(node, signature, make) {
  if (node.dataset.filled === signature) return false;
  node.dataset.filled = signature;
  node.replaceChildren(...[make()].flat().filter(Boolean));
  return true;
}

export function button(text, label, action, attributes = {}) {
  return el("button", { type: "button", "aria-label": label, title: label, onclick: action, text, ...attributes });
}
