// Asks the server. The token comes once in the address' fragment, is kept for this tab and never sent in a URL.

const KEPT = "rove-token";

/** Takes the token out of the address bar, so that nobody copies it with the address. */
export function takeToken() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const token = fragment.get("token");
  if (token === null) return;
  keepToken(token);
  fragment.delete("token");
  const rest = fragment.toString();
  history.replaceState(null, "", location.pathname + location.search + (rest ? `#${rest}` : ""));
}

export function keepToken(token) {
  try {
    sessionStorage.setItem(KEPT, token);
  } catch {
    // A browser that keeps nothing asks again.
  }
}

function headers() {
  let token = null;
  try {
    token = sessionStorage.getItem(KEPT);
  } catch {
    // as above
  }
  return token ? { Authorization: `Bearer ${token}` } : {};
}

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Returns the answer, or raises Refused with the server's words. */
export async function ask(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: headers(), cache: "no-store", credentials: "same-origin" });
  if (answer.ok) return answer;
  let said = "";
  try {
    const body = (await answer.text()).slice(0, 2000);
    said = body;
    said = JSON.parse(body).error ?? body;
  } catch {
    // no JSON: what was said stays
  }
  throw new Refused(answer.status, typeof said === "string" && said ? said.slice(0, 300) : `the server answered ${answer.status}`);
}

export async function askJson(path) {
  return (await ask(path)).json();
}

export function runPath(run, rest) {
  return `api/runs/${encodeURIComponent(run)}/${rest}`;
}
