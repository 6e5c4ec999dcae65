// Plays a run that is embedded in the file itself: three elements whose text is base64 of gzip of JSON.
//
//   rove-head      the head, as the server gives it
//   rove-changes   {"now": seconds, "changes": [[t, app, channel, key, value], …]}
//   rove-pictures  optional: {app: {sink: [[frame, "image/jpeg", base64], …]}}, frames in ascending order

export function hasReplay() {
  return document.getElementById("rove-head") !== null;
}

async function embedded(id) {
  const element = document.getElementById(id);
  const packed = element?.textContent.trim();
  if (!packed) return null;
  const compressed = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  element.textContent = "";
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

export class ReplayFeed {
  constructor() {
    this.lost = false;
    this.ended = true;
  }

  head() {
    return embedded("rove-head");
  }

  async follow(take) {
    const found = await embedded("rove-changes");
    const changes = Array.isArray(found) ? found : (found?.changes ?? []);
    const last = changes.reduce((latest, change) => Math.max(latest, Number(change?.[0]) || 0), 0);
    this.pictures = (await embedded("rove-pictures")) ?? {};
    take({ now: Number.isFinite(found?.now) ? found.now : last, ended: true, changes });
  }

  age() {
    return 0;
  }

  /** The nearest picture that is not later than `frame`, else the first. */
  async picture(app, sink, frame) {
    const kept = this.pictures?.[app]?.[sink] ?? [];
    let best = kept[0];
    for (const each of kept) if (frame === null || each[0] <= frame) best = each;
    if (!best || !/^image\/(jpeg|png)$/.test(best[1])) throw new Error("no picture was kept in this file");
    return { url: `data:${best[1]};base64,${best[2]}`, frame: best[0] };
  }

  close() {}
}
