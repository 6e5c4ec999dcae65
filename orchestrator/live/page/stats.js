// What benchmarks read from the page: how long frames took, and when data was shown.

const KEPT = 600;
const stats = { frameMs: [], frames: 0, drawn: 0, shownAt: 0, shownRunTime: 0, shownChanges: 0 };
window.roveStats = stats;

export function countFrame(milliseconds) {
  stats.frames += 1;
  stats.frameMs.push(milliseconds);
  if (stats.frameMs.length > KEPT) stats.frameMs.splice(0, stats.frameMs.length - KEPT);
}

/** Notes what of the history is now on the screen: the number of changes, and the newest. */
export function countShown(history) {
  stats.drawn += 1;
  stats.shownAt = performance.timeOrigin + performance.now();
  stats.shownRunTime = history.last;
  stats.shownChanges = history.count;
}
