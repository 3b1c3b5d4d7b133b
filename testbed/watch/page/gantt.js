// The Gantt chart: VMs by host, their lanes and what ran there. It draws what is visible and no more:
// rows by their tops, spans by searching each visible lane, and what is narrower than a pixel once.

import { drawAxis, drawGrid } from "./axis.js";
import { upperBound } from "./columns.js";
import { drawLinks, drawMarks } from "./marks.js";
import { AXIS, Rows } from "./rows.js";
import { COLOURS, colours, dim, fit, pattern } from "./theme.js";
import { drawStrip, isCrowded } from "./strip.js";
import { vmState } from "./moment.js";
import { counted } from "./words.js";

const STATE_FILLS = { boot: "boot", hibernating: "frozen", hibernated: "frozen", resuming: "frozen", notice: "notice" };

export class Gantt {
  constructor(scroller, canvas, spacer) {
    this.scroller = scroller;
    this.canvas = canvas;
    this.spacer = spacer;
    this.rows = new Rows();
    this.laidFor = "";
    /** How many bars the last frame drew. */
    this.drawn = 0;
    /** Whether the last frame had a host with too many VMs to draw each. */
    this.isCrowded = false;
    /** How many migrations the last frame showed, and how many its window has. */
    this.links = { shown: 0, all: 0 };
    this.size = { width: 0, height: 0, top: 0 };
    /** The sheet that the chart is printed on; null on the screen. */
    this.sheet = null;
  }

  /** Width of the names on the left. */
  get gutter() {
    return this.size.width < 600 ? 92 : 168;
  }

  /** Measures the chart; not while drawing, where it would force a layout. */
  measure() {
    if (this.sheet) {
      this.size = { width: this.sheet.width, height: this.sheet.height, top: 0 };
      return;
    }
    this.size.width = this.scroller.clientWidth;
    this.size.height = this.scroller.clientHeight;
    this.size.top = this.scroller.scrollTop;
  }

  x(time, view) {
    return this.gutter + view.part(time) * (this.size.width - this.gutter);
  }

  timeAt(x, view) {
    return view.timeAt((x - this.gutter) / (this.size.width - this.gutter));
  }

  /** Lays the rows out again if the run, the window or the reader's choice asks for it. */
  lay(state) {
    const { history, view, choice, head, run, rows, host } = state;
    // VMs that come and go with the window make it part of what is laid out.
    const moving = { now: head.toFixed(2), window: `${view.from.toFixed(2)} ${view.until.toFixed(2)}`, host }[rows] ?? "";
    const room = this.sheet?.room ?? this.size.height;
    const wanted = [history.shape, rows, choice.density, room, moving].join("|");
    if (wanted === this.laidFor && this.laidHistory === history) return;
    this.laidFor = wanted;
    this.laidHistory = history;
    const isShown = {
      window: (vm) => vm.from <= view.until && vm.until >= view.from,
      now: (vm) => vm.from <= head && vm.until > head,
    }[rows] ?? (() => true);
    const isHostShown = (id) => rows !== "host" || id === host;
    this.rows.lay(history, {
      isShown, isHostShown, room, density: choice.density, isProcessors: run?.rows === "processors",
    });
    // One host has few rows: its chart ends where they do.
    const most = rows === "host" ? `${Math.max(160, this.rows.height + 4)}px` : "";
    if (this.scroller.style.maxHeight !== most) this.scroller.style.maxHeight = most;
    const height = `${Math.max(this.rows.height, this.size.height)}px`;
    if (this.spacer.style.height !== height) this.spacer.style.height = height;
  }

  draw(state) {
    const { width, top } = this.size;
    if (width < 50 || this.size.height < 50) return;
    this.lay(state);
    if (this.sheet) this.size.height = Math.min(this.sheet.height, this.rows.height);
    const { height } = this.size;
    const theme = colours();
    const ink = fit(this.canvas, width, height);
    this.ink = ink;
    this.theme = theme;
    this.state = state;
    this.drawn = 0;
    this.isCrowded = false;
    const { view, history } = state;
    // Nothing begins in the future: what goes on reaches to the clock.
    this.edge = state.edge;
    ink.fillStyle = theme.bg;
    ink.fillRect(0, 0, width, height);
    const shift = view.scale === "even" ? (-view.from * (width - this.gutter)) / view.span : 0;
    this.fills = Object.fromEntries(
      Object.entries(theme.stripes).map(([name, tile]) => [name, pattern(ink, tile, shift)]),
    );
    drawGrid(this);
    ink.save();
    ink.beginPath();
    ink.rect(this.gutter, AXIS, width - this.gutter, height - AXIS);
    ink.clip();
    const first = this.rows.firstAt(top + AXIS);
    const seen = [];
    for (let n = first; n < this.rows.entries.length; n += 1) {
      const entry = this.rows.entries[n];
      if (entry.top > top + height) break;
      seen.push(entry);
      if (entry.kind === "vm") this.vm(entry, entry.top - top);
      if (entry.kind === "strip") drawStrip(this, entry, entry.top - top);
    }
    this.links = drawLinks(this, top);
    this.future();
    ink.restore();
    this.names(seen, top);
    drawAxis(this);
  }

  /** What lies beyond the playhead is faint, as it has not happened yet at the time that is shown; and the playhead. */
  future() {
    const { ink, theme } = this;
    const { view, head, run, isLive, history } = this.state;
    dim(ink, theme, this.x(head, view), AXIS, this.size);
    const deadline = run?.deadline_s;
    if (deadline) this.dashed(this.x(deadline, view), theme.limit, [5, 4]);
    if (history.over === null) {
      const edge = this.x(this.edge, view);
      ink.globalAlpha = 0.5;
      ink.fillStyle = theme.soft;
      ink.fillRect(edge, AXIS, this.size.width, this.size.height);
      ink.globalAlpha = 1;
    }
    ink.fillStyle = theme.accent;
    ink.fillRect(Math.round(this.x(head, view)) - (isLive ? 0.5 : 1), AXIS, isLive ? 1 : 2, this.size.height);
  }

  dashed(x, colour, dash) {
    const { ink } = this;
    ink.strokeStyle = colour;
    ink.setLineDash(dash);
    ink.beginPath();
    ink.moveTo(x, AXIS);
    ink.lineTo(x, this.size.height);
    ink.stroke();
    ink.setLineDash([]);
  }

  vm(entry, y) {
    const { ink, theme } = this;
    const { view, selected } = this.state;
    const { vm } = entry;
    const until = Math.min(vm.until, this.edge);
    if (vm.from > view.until || until < view.from) return;
    const left = Math.max(this.x(vm.from, view), this.gutter - 4);
    const right = Math.min(this.x(until, view), this.size.width + 4);
    const isChosen = selected === `vm${vm.id}`;
    ink.fillStyle = theme.life;
    ink.fillRect(left, y, Math.max(1, right - left), entry.height);
    this.drawn += 1;
    const { hasBackground } = this.state.history;
    vm.foreground.forEach((lane, n) => this.lane(entry, lane, n, y, false, hasBackground));
    if (hasBackground) vm.background.forEach((lane, n) => this.lane(entry, lane, n, y, true, true));
    this.states(entry, y);
    if (entry.credits) this.credits(entry, y + entry.height - entry.credits);
    drawMarks(this, entry, y);
    if (isChosen) {
      ink.strokeStyle = theme.accent;
      ink.lineWidth = 1.5;
      ink.strokeRect(left + 0.75, y - 1, Math.max(1, right - left - 1.5), entry.height + 2);
      ink.lineWidth = 1;
    }
  }

  /** A VM of a customer for a time on some of its host's vCPUs: it runs nothing that the run knows of. */
  customer(vm, { from, until }, y, height) {
    const { ink, theme } = this;
    const { view, selected } = this.state;
    const left = Math.max(this.x(from, view), this.gutter - 4);
    const wide = Math.min(this.x(until, view), this.size.width + 4) - left;
    ink.fillStyle = theme.work[vm.sale.colour];
    ink.fillRect(left, y, Math.max(1, wide - (wide > 3 ? 0.8 : 0)), height);
    this.drawn += 1;
    if (wide > 3) {
      const entry = { vm, height, credits: 0 };
      this.states(entry, y, until);
      drawMarks(this, entry, y);
    }
    if (selected !== `vm${vm.id}`) return;
    ink.strokeStyle = theme.fg;
    ink.lineWidth = 2;
    ink.strokeRect(left, y - 0.5, Math.max(3, wide), height + 1);
    ink.lineWidth = 1;
  }

  colourOf(task) {
    const { kinds } = this.state.history;
    const n = kinds.size > 1 && kinds.size < COLOURS ? kinds.get(task.kind) : task.number % (COLOURS - 1);
    return this.theme.work[n];
  }

  /** The spans of one lane; what is narrower than a pixel is drawn once, as one dense bar. */
  lane(entry, spans, lane, y, isBackground, hasBackground) {
    const { ink, theme } = this;
    const { view, history, selectedTask } = this.state;
    const { from, until } = history.spans;
    const [below, height] = this.rows.part(lane, isBackground, hasBackground);
    const top = y + below;
    if (top > this.size.height || top + height < AXIS) return;
    let n = this.firstSpan(spans, view.from);
    let denseFrom = -1;
    let denseUntil = -1;
    const endDense = () => {
      if (denseFrom >= 0) {
        ink.fillStyle = theme.work[COLOURS - 1];
        ink.fillRect(denseFrom, top, denseUntil - denseFrom, height);
        this.drawn += 1;
      }
      denseFrom = -1;
    };
    while (n < spans.length) {
      const span = spans[n];
      const begin = from.values[span];
      if (begin > view.until) break;
      const left = this.x(begin, view);
      const right = this.x(Math.min(until.values[span], this.edge), view);
      if (right - left < 1) {
        const column = Math.floor(left);
        if (denseUntil < column || denseFrom < 0) {
          endDense();
          denseFrom = column;
        }
        denseUntil = column + 1;
        n = this.firstSpan(spans, this.timeAt(column + 1, view), n + 1);
        continue;
      }
      endDense();
      const task = history.tasks[history.spans.task[span]];
      const x = Math.max(left, this.gutter - 4);
      const wide = Math.min(right, this.size.width + 4) - x;
      ink.globalAlpha = isBackground ? 0.55 : 1;
      ink.fillStyle = this.colourOf(task);
      ink.fillRect(x, top, Math.max(1, wide - (wide > 4 ? 0.7 : 0)), height);
      ink.globalAlpha = 1;
      this.slow(span, top, height);
      if (task === selectedTask) {
        ink.strokeStyle = theme.fg;
        ink.lineWidth = 2;
        ink.strokeRect(x + 1, top + 1, Math.max(2, wide - 2.7), Math.max(2, height - 2));
        ink.lineWidth = 1;
      }
      if (!isBackground && height >= 8.5 && wide > 16) this.label(span, task, lane, x, wide, top, height);
      this.drawn += 1;
      n += 1;
    }
    endDense();
  }

  /** Index of the first of a lane's spans that ends after a time. */
  firstSpan(spans, time, low = 0) {
    const { until } = this.state.history.spans;
    let high = spans.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (until.values[spans[middle]] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  label(span, task, lane, x, wide, top, height) {
    const { ink, theme } = this;
    const lanes = this.state.history.spans.lanes[span];
    // A job of many processes has its number on the first of neighbouring lanes.
    if (lane > 0 && lanes.length > 1 && lanes.includes(lane - 1)) return;
    const text = String(task.number);
    // Beyond the playhead bars are too faint for letters.
    const last = Math.min(x + wide, this.x(this.state.head, this.state.view));
    if (text.length * 6.2 + 6 > last - Math.max(x, this.gutter)) return;
    ink.font = `${Math.min(11, height - 1)}px ${theme.font}`;
    ink.fillStyle = theme["in-bar"];
    ink.textAlign = "left";
    ink.textBaseline = "middle";
    ink.fillText(text, Math.max(x, this.gutter) + 3, top + height / 2 + 0.5);
  }

  /** Baseline mode: a burstable VM's tasks run slower there. */
  slow(span, top, height) {
    const modes = this.state.history.spans.modes[span];
    if (modes.length === 2 && modes[1] !== "baseline") return;
    const { view, history } = this.state;
    for (let n = 0; n < modes.length; n += 2) {
      if (modes[n + 1] !== "baseline") continue;
      const end = Math.min(modes[n + 2] ?? Infinity, history.spans.until.at(span), this.edge);
      this.ink.fillStyle = this.fills.slow;
      const left = this.x(modes[n], view);
      this.ink.fillRect(left, top, this.x(end, view) - left, height);
    }
  }

  /** The states of a VM that are not plain running, until a time at most. */
  states(entry, y, latest = Infinity) {
    const { ink, theme } = this;
    const { view } = this.state;
    const { vm } = entry;
    const height = entry.height - entry.credits;
    for (let n = 0; n < vm.states.length; n += 1) {
      const fill = STATE_FILLS[vm.states[n]];
      if (!fill) continue;
      const begin = vm.stateTimes[n];
      const end = Math.min(vm.stateTimes[n + 1] ?? Infinity, vm.until, this.edge, latest);
      if (end <= begin || begin > view.until || end < view.from) continue;
      const left = Math.max(this.x(begin, view), this.gutter - 8);
      const wide = Math.max(1, Math.min(this.x(end, view), this.size.width + 8) - left);
      ink.fillStyle = this.fills[fill];
      ink.fillRect(left, y, wide, height);
      if (fill === "frozen") {
        ink.strokeStyle = theme["frozen-line"];
        ink.strokeRect(left + 0.5, y + 0.5, wide - 1, height - 1);
      }
    }
  }

  credits(entry, y) {
    const { ink, theme } = this;
    const { view } = this.state;
    const { vm } = entry;
    const height = entry.credits - 2;
    const { times, values } = vm.credits;
    const first = Math.max(0, upperBound(times.values, times.length, view.from) - 1);
    let most = 1e-9;
    for (let n = 0; n < values.length; n += 1) most = Math.max(most, values.values[n]);
    const end = Math.min(vm.until, this.edge);
    ink.beginPath();
    let last = 0;
    let x = this.x(Math.max(times.at(first), view.from - view.span), view);
    ink.moveTo(x, y + height);
    for (let n = first; n < times.length && times.at(n) <= view.until; n += 1) {
      x = this.x(times.at(n), view);
      last = y + height - (Math.max(0, values.at(n)) / most) * height;
      ink.lineTo(x, last);
    }
    x = this.x(Math.min(end, view.until), view);
    ink.lineTo(x, last);
    ink.lineTo(x, y + height);
    ink.closePath();
    ink.fillStyle = theme.measure;
    ink.fill();
    ink.strokeStyle = theme["measure-line"];
    ink.stroke();
  }

  names(seen, top) {
    const { ink, theme } = this;
    const { head, selected } = this.state;
    const { gutter, size } = this;
    ink.fillStyle = theme.bg;
    ink.fillRect(0, AXIS, gutter, size.height);
    ink.textBaseline = "middle";
    ink.textAlign = "left";
    for (const entry of seen) {
      const y = entry.top - top;
      if (entry.kind === "host") {
        ink.fillStyle = theme.fg;
        ink.font = `600 12px ${theme.font}`;
        // A worker's name ends with the number of its process, which nobody looks for.
        const name = entry.host?.name.split("@")[0] ?? (entry.id === null || entry.id === undefined ? "no host yet" : `host ${entry.id}`);
        ink.fillText(name, 10, y + 12, gutter - 16);
        ink.fillStyle = theme.line;
        ink.fillRect(gutter, Math.round(y + 20), size.width, 1);
        continue;
      }
      if (entry.kind === "strip") {
        this.vcpus(entry, y);
        continue;
      }
      const { vm } = entry;
      const state = vmState(vm, head);
      const isGone = state === "ended" || state === null;
      if (selected === `vm${vm.id}`) {
        ink.fillStyle = theme.soft;
        ink.fillRect(4, y - 2, gutter - 8, entry.height + 4);
      }
      ink.fillStyle = isGone ? theme.dim : theme.fg;
      ink.font = `12px ${theme.font}`;
      const isNarrow = gutter < 120;
      if (this.state.run?.rows === "processors") {
        this.processors(entry, y);
        continue;
      }
      this.market(vm.sale, y, entry.height);
      ink.fillText(isNarrow ? `VM ${vm.id}` : `VM ${vm.id}  ${vm.type}`, 10, y + 7.5, gutter - 20);
      if (entry.height < 27) continue;
      ink.fillStyle = theme.dim;
      ink.font = `11px ${theme.font}`;
      const about = isNarrow ? vm.market : `${vm.market}, ${state ?? "not yet"}`;
      ink.fillText(about, 10, y + 21, gutter - 20);
    }
    ink.fillStyle = theme.axis;
    ink.fillRect(gutter - 1, AXIS, 1, size.height);
  }

  /** The mark of a VM's market at its name: a line on demand, a dashed one on spot, a hollow one if it is burstable. */
  market({ key }, y, height) {
    const { ink } = this;
    if (key === "burstable") {
      ink.strokeStyle = ink.fillStyle;
      ink.strokeRect(2.5, y + 0.5, 3, height - 1);
      return;
    }
    const [dash, step] = key === "spot" ? [3, 5] : [height, height];
    for (let top = 0; top < height; top += step) ink.fillRect(2, y + top, 4, Math.min(dash, height - top));
  }

  /** How many rows a sheet has, and how many there are: {shown, all}. */
  get printed() {
    const rows = this.rows.entries.filter((entry) => entry.kind !== "host");
    const shown = rows.filter((entry) => entry.top + entry.height <= this.size.height);
    return { shown: shown.length, all: rows.length };
  }

  /** The names of a host's vCPUs, on which customers' VMs are. */
  vcpus(entry, y) {
    const { strip, height } = entry;
    const { ink, theme, gutter } = this;
    ink.fillStyle = theme.dim;
    ink.font = `11px ${theme.font}`;
    const host = this.state.history.hosts.get(entry.host);
    const isOver = host?.vcpus > 0 && strip.lanes.length > host.vcpus;
    if (height >= 12) ink.fillText(counted(host?.vcpus ?? strip.lanes.length, "vCPU"), 10, y + 6, gutter - 50);
    if (isOver && height >= 27) ink.fillText("overcommitted", 10, y + 20, gutter - 50);
    if (!isCrowded(this, strip)) {
      this.numbers(strip.lanes.length, y);
      return;
    }
    // How many are in use is counted from the bottom up.
    ink.textAlign = "right";
    ink.fillText(String(strip.lanes.length), gutter - 6, y + 5);
    if (height >= 27) ink.fillText("0", gutter - 6, y + height - 5);
    ink.textAlign = "left";
  }

  /** The names of a machine of parallel jobs: its processors are numbered where there is room. */
  processors({ vm, height }, y) {
    const { ink, theme, gutter } = this;
    ink.fillText("processors", 10, y + 7.5, gutter - 50);
    ink.fillStyle = theme.dim;
    ink.font = `11px ${theme.font}`;
    if (height >= 27) ink.fillText(`${vm.lanes}, ${vmState(vm, this.state.head) ?? "not yet"}`, 10, y + 21, gutter - 50);
    this.numbers(vm.lanes, y);
  }

  /** The numbers of lanes at the right end of the names, as many as have room. */
  numbers(lanes, y) {
    const { ink, gutter } = this;
    ink.textAlign = "right";
    const every = Math.max(1, Math.ceil(13 / this.rows.lane));
    for (let lane = 0; lane < lanes; lane += every) {
      const middle = y + (lane + 0.5) * this.rows.lane;
      if (middle > AXIS && middle < this.size.height) ink.fillText(String(lane), gutter - 6, middle);
    }
    ink.textAlign = "left";
  }
}
