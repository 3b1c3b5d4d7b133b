// One chart over time: lines that step or rise, dots, and level lines. Its window is the Gantt chart's.
// Where points are closer than pixels, a pixel has the lowest and the highest of them.

import { upperBound } from "./columns.js";
import { colours, dim, fit } from "./theme.js";
import { niceStep } from "./words.js";

const BOTTOM = 20;
const TOP = 8;
const LEFT = 46;

export class Plot {
  constructor(canvas) {
    this.canvas = canvas;
    this.isSeen = true;
    this.width = 0;
    this.height = 0;
    /** Whether it is drawn for paper, in the size that print() was given. */
    this.isPrinted = false;
    new ResizeObserver(([entry]) => {
      if (this.isPrinted) return;
      this.width = Math.floor(entry.contentRect.width);
      this.height = Math.floor(entry.contentRect.height);
      this.isStale = true;
    }).observe(canvas.parentElement);
    new IntersectionObserver(([entry]) => {
      this.isSeen = entry.isIntersecting || this.isPrinted;
      this.isStale = true;
      // The box and not the canvas, which is hidden while there is nothing to draw.
    }).observe(canvas.parentElement);
  }

  /** Takes the size of a chart on paper, or with null that of its box on the screen. */
  print(size) {
    this.isPrinted = size !== null;
    const { width, height } = this.canvas.parentElement.getBoundingClientRect();
    [this.width, this.height] = size ?? [Math.floor(width), Math.floor(height)];
    this.isSeen = true;
    this.isStale = true;
  }

  timeAt(x) {
    return this.view.timeAt((x - LEFT) / (this.width - LEFT - 8));
  }

  x(time) {
    return LEFT + this.view.part(time) * (this.width - LEFT - 8);
  }

  y(value) {
    return this.bottom - ((value - this.low) / (this.high - this.low)) * (this.bottom - TOP);
  }

  /**
   * Draws `lines` ({colour, kind: "step" | "rise" | "dots", times, values, length, until?, dash?}) and
   * `levels` ({value, colour, label}) in the view's window.
   */
  draw({ lines, levels = [], label, isSigned = false }, { view, edge, head }) {
    if (!this.isSeen || this.width < 60 || this.height < 40) return;
    const ink = fit(this.canvas, this.width, this.height);
    Object.assign(this, { ink, view, edge, theme: colours(), bottom: this.height - BOTTOM });
    ink.fillStyle = this.theme.bg;
    ink.fillRect(0, 0, this.width, this.height);
    const pieces = lines.map((line) => this.piece(line));
    this.scale(pieces, levels, isSigned);
    this.axes(label);
    ink.save();
    ink.beginPath();
    ink.rect(LEFT, 0, this.width - LEFT, this.height);
    ink.clip();
    for (const piece of pieces) this.line(piece);
    dim(ink, this.theme, this.x(head), 0, { width: this.width, height: this.bottom });
    for (const level of levels) this.level(level);
    ink.fillStyle = this.theme.accent;
    ink.fillRect(Math.round(this.x(head)), TOP - 4, 1, this.bottom - TOP + 4);
    ink.restore();
    this.levelLabels(levels);
  }

  /** The points of a line in the window, with one on either side, and their extremes. */
  piece(line) {
    const { times, values, length } = line;
    const first = Math.max(0, upperBound(times, length, this.view.from) - 1);
    const last = Math.min(length, upperBound(times, length, this.view.until) + 1);
    let [low, high] = [Infinity, -Infinity];
    for (let n = first; n < last; n += 1) {
      if (values[n] < low) low = values[n];
      if (values[n] > high) high = values[n];
    }
    if (line.ending !== undefined && line.ending > high) high = line.ending;
    return { line, first, last, low, high };
  }

  scale(pieces, levels, isSigned) {
    let high = Math.max(...pieces.map((p) => p.high), ...levels.map((l) => l.value), -Infinity);
    let low = isSigned ? Math.min(...pieces.map((p) => p.low), ...levels.map((l) => l.value)) : 0;
    if (!Number.isFinite(high)) high = 1;
    if (!Number.isFinite(low)) low = 0;
    if (high <= low) high = low + (isSigned ? 0.01 : 1);
    this.tick = niceStep((high - low) / Math.max(2, Math.min(5, (this.bottom - TOP) / 30)));
    this.high = Math.ceil(high / this.tick - 1e-9) * this.tick;
    this.low = Math.floor(low / this.tick + 1e-9) * this.tick;
  }

  axes(label) {
    const { ink, theme, view } = this;
    ink.font = `11px ${theme.font}`;
    ink.textBaseline = "middle";
    ink.textAlign = "right";
    for (let value = this.low; value <= this.high + this.tick / 2; value += this.tick) {
      const y = Math.round(this.y(value)) + 0.5;
      ink.fillStyle = theme.line;
      ink.fillRect(LEFT, y, this.width - LEFT, 1);
      ink.fillStyle = theme.dim;
      ink.fillText(label(value), LEFT - 5, y);
    }
    ink.textAlign = "center";
    for (const { time, label: words } of view.ticks(this.width - LEFT - 8, 80)) {
      const x = this.x(time);
      if (x > this.width - 20 || x < LEFT) continue;
      ink.fillStyle = theme.axis;
      ink.fillRect(Math.round(x), this.bottom, 1, 4);
      ink.fillStyle = theme.dim;
      ink.fillText(words, x, this.bottom + 12);
    }
    ink.fillStyle = theme.axis;
    ink.fillRect(LEFT, this.bottom, this.width, 1);
  }

  level({ value, colour }) {
    const { ink } = this;
    ink.strokeStyle = colour;
    ink.setLineDash([5, 4]);
    ink.beginPath();
    ink.moveTo(LEFT, this.y(value));
    ink.lineTo(this.width, this.y(value));
    ink.stroke();
    ink.setLineDash([]);
  }

  levelLabels(levels) {
    const { ink, theme } = this;
    ink.font = `600 11px ${theme.font}`;
    ink.textAlign = "right";
    let above = -Infinity;
    for (const { value, colour, label } of [...levels].sort((a, b) => b.value - a.value)) {
      if (!label) continue;
      // Labels of levels that lie together stand below each other.
      const y = Math.max(this.y(value) + 9, above + 13);
      above = y;
      ink.lineWidth = 3;
      ink.strokeStyle = theme.bg;
      ink.strokeText(label, this.width - 4, y);
      ink.lineWidth = 1;
      ink.fillStyle = colour;
      ink.fillText(label, this.width - 4, y);
    }
  }

  line({ line, first, last }) {
    const { ink } = this;
    if (last <= first) return;
    ink.strokeStyle = line.colour;
    ink.fillStyle = line.colour;
    if (line.kind === "dots") {
      ink.globalAlpha = 0.65;
      for (let n = first; n < last; n += 1) {
        ink.fillRect(this.x(line.times[n]) - 1.5, this.y(line.values[n]) - 1.5, 3, 3);
      }
      ink.globalAlpha = 1;
      return;
    }
    ink.lineWidth = 1.8;
    ink.lineJoin = "round";
    if (line.dash) ink.setLineDash(line.dash);
    ink.beginPath();
    const isStep = line.kind === "step";
    let y = this.y(line.values[first]);
    let column = -Infinity;
    let [lowest, highest] = [y, y];
    ink.moveTo(this.x(line.times[first]), y);
    for (let n = first; n < last; n += 1) {
      const x = this.x(line.times[n]);
      const next = this.y(line.values[n]);
      if (x - column < 0.75) {
        // Within one pixel: how far it went, and where it came to.
        lowest = Math.max(lowest, next);
        highest = Math.min(highest, next);
        y = next;
        continue;
      }
      if (lowest !== y || highest !== y) {
        ink.lineTo(column, lowest);
        ink.lineTo(column, highest);
        ink.lineTo(column, y);
      }
      if (isStep) ink.lineTo(x, y);
      ink.lineTo(x, next);
      [y, lowest, highest, column] = [next, next, next, x];
    }
    const isLast = last === line.length;
    const end = this.x(Math.min(line.until ?? Infinity, this.edge, this.view.until));
    if (isLast && line.ending !== undefined) ink.lineTo(end, this.y(line.ending));
    else if (isStep) ink.lineTo(end, y);
    ink.stroke();
    ink.setLineDash([]);
    ink.lineWidth = 1;
  }
}
