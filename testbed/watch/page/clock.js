// Times of a run: its clock between two pieces of news, and the playhead, whose time all panels show.

/** How far beyond the last news the clock is reckoned, in real milliseconds. */
const BEYOND_MS = 1000;

export class RunClock {
  constructor() {
    this.forget();
  }

  forget() {
    this.heard = 0;
    this.heardAt = 0;
    this.rate = 0;
    this.isOver = false;
    this.shown = 0;
  }

  /** Takes the server's news; `rate` is emulated seconds a real one, as far as the run says. */
  news(now, speedup) {
    const at = performance.now();
    this.isOver = now.over || now.coordinator === "over";
    // Away: time may go on for its workers, but nobody says how far.
    this.rate = now.coordinator === "serving" && !this.isOver ? (speedup ?? this.measured(now.clock_s, at)) : 0;
    this.heard = now.clock_s;
    this.heardAt = at;
  }

  measured(clock, at) {
    const passed = (at - this.heardAt) / 1000;
    return this.heardAt && passed > 0.1 ? Math.max(0, (clock - this.heard) / passed) : 0;
  }

  stop() {
    this.heard = this.shown;
    this.rate = 0;
  }

  /** The run's time by now; it never goes back, and not beyond what the last news allows. */
  at(real, lastChange) {
    const passed = Math.min(BEYOND_MS, Math.max(0, real - this.heardAt)) / 1000;
    this.shown = Math.max(this.shown, this.heard + passed * this.rate, lastChange);
    return this.shown;
  }
}

/** The playhead: at the live edge, at a time, or playing from a time at a speed. */
export class Playhead {
  constructor() {
    this.isLive = true;
    this.time = 0;
    this.speed = 0;
    this.last = 0;
  }

  live() {
    this.isLive = true;
    this.speed = 0;
  }

  goTo(time) {
    this.isLive = false;
    this.time = Math.max(0, time);
  }

  play(speed) {
    this.isLive = false;
    this.speed = speed;
    this.last = performance.now();
  }

  pause() {
    this.speed = 0;
  }

  get isPlaying() {
    return this.speed > 0;
  }

  /** Moves the playhead to where it is by now; at the edge of the run it stays with the edge. */
  tick(real, edge) {
    if (this.isPlaying) {
      this.time += ((real - this.last) / 1000) * this.speed;
      this.last = real;
      if (this.time >= edge) this.live();
    }
    if (this.isLive) this.time = edge;
    return this.time;
  }
}
