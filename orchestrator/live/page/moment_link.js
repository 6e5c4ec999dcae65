// Keeps the moment that is shown in the address, so that a copied address leads to it: #t=42.5

const WAIT_MS = 400;
let waiting = null;

/** The moment that the address asks for, or null. */
export function wishedMoment() {
  const wished = new URLSearchParams(location.hash.slice(1)).get("t");
  const t = wished === null ? NaN : Number(wished);
  return Number.isFinite(t) ? t : null;
}

/** Called whenever the moment changes; the address follows once it is still. */
export function linkMoment(clock) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const still = !clock.live && !clock.playing && !clock.fresh;
    const fragment = still ? `#t=${clock.t.toFixed(1)}` : "";
    if (location.hash !== fragment) history.replaceState(null, "", location.pathname + location.search + fragment);
  }, WAIT_MS);
}
