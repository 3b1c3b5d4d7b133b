// The window of time that the charts show: all of the run, a span that follows the playhead, or one
// that stays where it was put; and the scale of time in it.

import { timeLabel, timeStep } from "./words.js";

const NARROWEST_S = 0.02;
/** Where in a following window the playhead stands. */
const FOLLOW_AT = 0.88;
/** Parts into which a logarithmic scale divides its window: the first part is as wide as the last ninety per cent of them. */
const STEEP = 999;
const LOG = Math.log1p(STEEP);
/** Distances from the fine end of a logarithmic scale that can have a tick, in seconds. */
const LOG_TICKS = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600]
  .concat([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((days) => days * 86400));

/** Scales of time: even, finest at the window's beginning, or finest at its end. */
export const SCALES = ["even", "log", "log-back"];

/** The place, from 0 to 1, of a time that is `u` of the window behind the fine end of a logarithmic scale. */
function logPart(u) {
  return u < 0 ? (u * STEEP) / LOG : Math.log1p(u * STEEP) / LOG;
}

function fromLogPart(part) {
  return part < 0 ? (part * LOG) / STEEP : Math.expm1(part * LOG) / STEEP;
}

export class View {
  constructor() {
    this.mode = "all";
    this.scale = "even";
    this.from = 0;
    this.span = 60;
  }

  get until() {
    return this.from + this.span;
  }

  /** The place of a time in the window: 0 at its left end, 1 at its right one. */
  part(time) {
    const u = (time - this.from) / this.span;
    if (this.scale === "log") return logPart(u);
    return this.scale === "log-back" ? 1 - logPart(1 - u) : u;
  }

  /** The time at a place of the window; the reverse of part(). */
  timeAt(part) {
    const u = this.scale === "log" ? fromLogPart(part) : this.scale === "log-back" ? 1 - fromLogPart(1 - part) : part;
    return this.from + u * this.span;
  }

  /** The ticks of an axis of `pixels`, at least `gap` pixels apart: [{time, label}]. None is before the run. */
  ticks(pixels, gap) {
    const found = [];
    if (this.scale === "even") {
      const step = timeStep((this.span / pixels) * gap);
      for (let time = Math.ceil(this.from / step) * step; time <= this.until; time += step) {
        if (time >= -1e-9) found.push({ time, label: timeLabel(time, step) });
      }
      return found;
    }
    const isBack = this.scale === "log-back";
    // Distances are told from the fine end; from the run's beginning they are times.
    const sign = isBack ? "−" : this.from > 1e-9 ? "+" : "";
    let last = -Infinity;
    for (const distance of [0, ...LOG_TICKS]) {
      const time = isBack ? this.until - distance : this.from + distance;
      const at = logPart(distance / this.span) * pixels;
      if (at > pixels || time < -1e-9) break;
      if (at - last < gap * 0.8) continue;
      last = at;
      const label = distance ? `${sign}${timeLabel(distance, distance)}` : isBack || sign ? "0" : timeLabel(0, 1);
      found.push({ time, label });
    }
    return found;
  }

  /** Fits the window to the run as far as it is known, or to the playhead. */
  tick(edge, head) {
    const isBack = this.scale === "log-back";
    if (this.mode === "all") {
      this.from = 0;
      // In steps, so that the scale of a growing chart does not change with each frame.
      const wanted = Math.max(edge, 1) * 1.02;
      if (wanted > this.span || this.span > wanted * 1.3) this.span = Math.max(wanted * 1.12, 10);
      // What lies beyond the clock would have the finest part of the scale.
      this.span = Math.max(isBack ? edge : this.span, 10);
    } else if (this.mode === "follow") {
      this.from = Math.max(0, head - this.span * (isBack ? 1 : FOLLOW_AT));
    }
  }

  showAll(edge) {
    this.mode = "all";
    this.span = Math.max(edge * 1.04, 10);
  }

  follow() {
    this.mode = "follow";
  }

  /** Zooms by a factor; the time `around` stays where it is, or the fine end of a logarithmic scale. */
  zoom(factor, around, edge) {
    const span = Math.min(Math.max(edge * 1.5, 20), Math.max(NARROWEST_S, this.span * factor));
    const ends = { log: this.from, "log-back": this.until };
    const fixed = ends[this.scale] ?? around;
    const part = (fixed - this.from) / this.span;
    this.from = fixed - part * span;
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

  /** Shows a stretch of time, with room on both sides. */
  show(from, until, edge) {
    const room = Math.max((until - from) * 0.6, NARROWEST_S, 1);
    this.mode = "free";
    this.from = Math.max(0, from - room);
    this.span = until + room - this.from;
    this.keepNear(edge);
  }

  /** The run can't be lost from sight. */
  keepNear(edge) {
    const room = this.span * 0.9;
    this.from = Math.min(Math.max(edge, 1) - this.span + room, Math.max(-room, this.from));
  }
}
