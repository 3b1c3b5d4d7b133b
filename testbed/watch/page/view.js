// The window of time that the charts show: all of the run, a span that follows the playhead, or one
// that stays where it was put.

const NARROWEST_S = 0.02;
/** Where in a following window the playhead stands. */
const FOLLOW_AT = 0.88;

export class View {
  constructor() {
    this.mode = "all";
    this.from = 0;
    this.span = 60;
  }

  get until() {
    return this.from + this.span;
  }

  /** Fits the window to the run as far as it is known, or to the playhead. */
  tick(edge, head) {
    if (this.mode === "all") {
      this.from = 0;
      // In steps, so that the scale of a growing chart does not change with each frame.
      const wanted = Math.max(edge, 1) * 1.02;
      if (wanted > this.span || this.span > wanted * 1.3) this.span = Math.max(wanted * 1.12, 10);
      this.span = Math.max(this.span, 10);
    } else if (this.mode === "follow") {
      this.from = Math.max(0, head - this.span * FOLLOW_AT);
    }
  }

  showAll(edge) {
    this.mode = "all";
    this.span = Math.max(edge * 1.04, 10);
  }

  follow() {
    this.mode = "follow";
  }

  /** Zooms by a factor; the time `around` stays where it is. */
  zoom(factor, around, edge) {
    const span = Math.min(Math.max(edge * 1.5, 20), Math.max(NARROWEST_S, this.span * factor));
    const part = (around - this.from) / this.span;
    this.from = around - part * span;
    this.span = span;
    if (this.mode !== "follow") this.mode = "free";
    this.keepNear(edge);
  }

  pan(seconds, edge) {
    this.from += seconds;
    this.mode = "free";
    this.keepNear(edge);
  }

  /** Moves a window that stays so that a time is in it. */
  reveal(time) {
    if (this.mode !== "free" || (time >= this.from && time <= this.until)) return;
    this.from = time - this.span / 2;
  }

  /** The run can't be lost from sight. */
  keepNear(edge) {
    const room = this.span * 0.9;
    this.from = Math.min(Math.max(edge, 1) - this.span + room, Math.max(-room, this.from));
  }
}
