// Keeps the moment that is shown: the live edge, or a moment that is played or held.

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];

export class Clock {
  constructor() {
    this.edge = 0; // how far the run has come, as far as it is known here
    this.goesOn = false; // the run has not ended, and news of it comes
    this.live = true;
    this.playing = false;
    this.speed = 1;
    this.t = 0;
    this.fresh = false; // a finished run that was just opened: playing begins where measuring began
    this.begin = 0;
    this.virtual = false;
    this.changed = () => {};
  }

  /** What the server says: the run is at `now`, and goes on or not. */
  hear(now, goesOn) {
    if (Number.isFinite(now)) {
      if (!goesOn) this.edge = now;
      else this.edge = Math.max(this.virtual ? this.edge : this.edge - 0.5, now);
      this.t = Math.min(this.t, this.edge);
    }
    this.goesOn = goesOn;
    if (this.live && !goesOn) this.live = false;
  }

  /** Lets `seconds` of wall time pass. Returns whether the moment changed. */
  advance(seconds) {
    if (this.goesOn && !this.virtual) this.edge += seconds;
    if (this.live) {
      const before = this.t;
      const behind = this.edge - before;
      if (Math.abs(behind) > (this.virtual ? 20 : 1.5)) this.t = this.edge;
      else this.t = Math.max(before, before + (this.virtual ? 0 : seconds) + behind * Math.min(1, seconds * 2));
      return this.t !== before;
    }
    if (!this.playing) return false;
    this.t += seconds * this.speed;
    if (this.t >= this.edge) {
      this.t = this.edge;
      if (this.goesOn) this.live = true;
      this.playing = false;
      this.changed();
    }
    return true;
  }

  seek(t) {
    this.t = Math.min(Math.max(0, t), this.edge);
    this.fresh = false;
    if (this.live) {
      this.live = false;
      this.playing = false;
    }
    this.changed();
  }

  /** The moment that states are asked for. At the live edge that is whatever came last. */
  get asked() {
    return this.live ? Infinity : this.t;
  }

  toggle() {
    if (this.live) {
      this.live = false;
      this.playing = false;
    } else {
      if (!this.playing && (this.fresh || this.t >= this.edge - 0.05)) this.t = this.fresh ? this.begin : 0;
      this.fresh = false;
      this.playing = !this.playing;
    }
    this.changed();
  }

  faster(steps) {
    const at = SPEEDS.indexOf(this.speed) + steps;
    this.speed = SPEEDS[Math.min(Math.max(at, 0), SPEEDS.length - 1)];
    this.changed();
  }

  toLive() {
    if (this.goesOn) {
      this.live = true;
      this.playing = false;
      this.t = this.edge;
    } else {
      this.seek(this.edge);
    }
    this.changed();
  }
}
