// Asks for a document again and again while the page can be seen, and says when answers fail to come.

import { askJson, Refused } from "../feed/api.js";

/** Raises what the first answer raises; later failures are given to `show` as its second argument. */
export async function poll(path, everyMs, show) {
  show(await askJson(path), null);
  document.documentElement.dataset.ready = "yes";
  const again = async () => {
    if (document.hidden) return;
    try {
      show(await askJson(path), null);
    } catch (error) {
      show(null, error instanceof Refused ? error.message : "The server does not answer");
    }
  };
  setInterval(again, everyMs);
}
