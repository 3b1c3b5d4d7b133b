// The Gantt chart: VMs by host, their lanes and what ran there. It draws what is visible and no more:
// rows by their tops, spans by searching each visible lane, and what is narrower than a pixel once.

import { lowerBound, upperBound } from "./columns.js";
import { BACKGROUND, isOfUser } from "./history.js";
import { AXIS, Rows } from "./rows.js";
import { COLOURS, colours, fit, pattern } from "./theme.js";
import { linksIn, vmState } from "./moment.js";
import { timeLabel, timeStep } from "./words.js";

const MANY_LINKS = 40;
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
    this.size = { width: 0, height: 0, top: 0 };
  }

  /** Width of the names on the left. */
  get gutter() {
    return this.size.width < 600 ? 92 : 168;
  }

  /** Measures the chart; not while drawing, where it would force a layout. */
  measure() {
    this.size.width = this.scroller.clientWidth;
    this.size.height = this.scroller.clientHeight;
    this.size.top = this.scroller.scrollTop;
  }

  x(time, view) {
    return this.gutter + ((time - view.from) / view.span) * (this.size.width - this.gutter);
  }

  timeAt(x, view) {
    return view.from + ((x - this.gutter) / (this.size.width - this.gutter)) * view.span;
  }

  /** Lays the rows out again if the run, the window or the reader's choice asks for it. */
  lay(state) {
    const { history, view, choice, head, run } = state;
    // VMs that come and go with the window make it part of what is laid out.
    const moving = choice.rows === "all" ? "" : choice.rows === "now" ? head.toFixed(2) : `${view.from.toFixed(2)} ${view.until.toFixed(2)}`;
    const wanted = [history.shape, choice.rows, choice.density, this.size.height, moving].join("|");
    if (wanted === this.laidFor && this.laidHistory === history) return;
    this.laidFor = wanted;
    this.laidHistory = history;
    const isShown = {
      all: () => true,
      window: (vm) => vm.from <= view.until && vm.until >= view.from,
      now: (vm) => vm.from <= head && vm.until > head,
    }[choice.rows];
    this.rows.lay(history, {
      isShown, room: this.size.height, density: choice.density, isProcessors: run?.rows === "processors",
    });
    const height = `${Math.max(this.rows.height, this.size.height)}px`;
    if (this.spacer.style.height !== height) this.spacer.style.height = height;
  }

  draw(state) {
    const { width, height, top } = this.size;
    if (width < 50 || height < 50) return;
    this.lay(state);
    const theme = colours();
    const ink = fit(this.canvas, width, height);
    this.ink = ink;
    this.theme = theme;
    this.state = state;
    this.drawn = 0;
    const { view, history } = state;
    this.perSecond = (width - this.gutter) / view.span;
    // Nothing begins in the future: what goes on reaches to the clock.
    this.edge = state.edge;
    ink.fillStyle = theme.bg;
    ink.fillRect(0, 0, width, height);
    const shift = -view.from * this.perSecond;
    this.fills = Object.fromEntries(
      Object.entries(theme.stripes).map(([name, tile]) => [name, pattern(ink, tile, shift)]),
    );
    this.grid();
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
    }
    this.links(history, top);
    this.future();
    ink.restore();
    this.names(seen, top);
    this.axis();
  }

  grid() {
    const { ink, theme } = this;
    const { view } = this.state;
    this.step = timeStep((view.span / (this.size.width - this.gutter)) * 95);
    ink.fillStyle = theme.line;
    for (let t = Math.ceil(view.from / this.step) * this.step; t <= view.until; t += this.step) {
      if (t >= -1e-9) ink.fillRect(Math.round(this.x(t, view)), AXIS, 1, this.size.height);
    }
  }

  /** What lies beyond the clock, and the playhead. */
  future() {
    const { ink, theme } = this;
    const { view, head, run, isLive, history } = this.state;
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
    this.marks(entry, y);
    if (isChosen) {
      ink.strokeStyle = theme.accent;
      ink.lineWidth = 1.5;
      ink.strokeRect(left + 0.75, y - 1, Math.max(1, right - left - 1.5), entry.height + 2);
      ink.lineWidth = 1;
    }
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
    if (text.length * 6.2 + 6 > x + wide - Math.max(x, this.gutter)) return;
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
      this.ink.fillRect(this.x(modes[n], view), top, ((end - modes[n]) * this.perSecond), height);
    }
  }

  states(entry, y) {
    const { ink, theme } = this;
    const { view } = this.state;
    const { vm } = entry;
    const height = entry.height - entry.credits;
    for (let n = 0; n < vm.states.length; n += 1) {
      const fill = STATE_FILLS[vm.states[n]];
      if (!fill) continue;
      const begin = vm.stateTimes[n];
      const end = Math.min(vm.stateTimes[n + 1] ?? Infinity, vm.until, this.edge);
      if (begin > view.until || end < view.from) continue;
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

  marks(entry, y) {
    const { ink, theme } = this;
    const { view, history } = this.state;
    const { vm } = entry;
    const times = vm.checkpointTimes;
    const size = Math.max(2.5, Math.min(5, this.rows.lane * 0.4));
    let lastX = -10;
    for (let n = lowerBound(times.values, times.length, view.from); n < times.length; n += 1) {
      const time = times.at(n);
      if (time > view.until) break;
      const x = this.x(time, view);
      const place = this.seatOf(history, vm, vm.checkpoints[n].task, time);
      // Marks that would cover each other are one.
      if (x - lastX < 1.5 && place === null) continue;
      lastX = x;
      const middle = y + (place ?? 0) + this.rows.lane / 2;
      ink.beginPath();
      ink.moveTo(x, middle - size);
      ink.lineTo(x + size, middle);
      ink.lineTo(x, middle + size);
      ink.lineTo(x - size, middle);
      ink.closePath();
      ink.fillStyle = theme["mark-fill"];
      ink.fill();
      ink.strokeStyle = theme["mark-line"];
      ink.stroke();
    }
    for (const act of vm.acts) {
      if (act.time < view.from || act.time > view.until) continue;
      this.flag(this.x(act.time, view), y - 2, isOfUser(act));
    }
    const isTaken = vm.why === "preempted" || vm.why === "host-lost" || vm.why === "failed";
    if (isTaken && vm.until >= view.from && vm.until <= view.until) {
      ink.fillStyle = theme.limit;
      ink.fillRect(this.x(vm.until, view) - 1, y - 2, 2.4, entry.height + 4);
    }
  }

  /** Height of a task's first lane on a VM at a time, or null. */
  seatOf(history, vm, taskIndex, time) {
    const { spans } = history;
    const list = history.tasks[taskIndex].spans;
    for (let n = list.length - 1; n >= 0; n -= 1) {
      const span = list[n];
      if (spans.vm[span] !== vm.index || spans.from.at(span) > time) continue;
      return spans.lanes[span][0] * this.rows.lane;
    }
    return null;
  }

  /** A flag: what the provider did, or somebody who looked on. */
  flag(x, y, isUser) {
    const { ink, theme } = this;
    ink.beginPath();
    ink.moveTo(x, y);
    ink.lineTo(x + 8, y + 3.5);
    ink.lineTo(x, y + 7);
    ink.closePath();
    ink.fillStyle = isUser ? theme.accent : theme["warn-line"];
    ink.fill();
    ink.fillRect(x - 0.6, y, 1.2, 14);
  }

  links(history, top) {
    const { ink, theme } = this;
    const { view, selectedTask } = this.state;
    const { spans } = history;
    const middle = (span) => {
      const entry = this.rows.of.get(spans.vm[span]);
      if (!entry) return null;
      const [below, height] = this.rows.part(spans.lanes[span][0] ?? 0, spans.tier[span] === BACKGROUND, history.hasBackground);
      return entry.top - top + below + height / 2;
    };
    const found = [];
    for (const n of linksIn(history, view, selectedTask?.index ?? null)) {
      const [before, after] = history.links[n];
      const [a, b] = [spans.until.at(before), spans.from.at(after)];
      if (a > view.until) continue;
      const [ya, yb] = [middle(before), middle(after)];
      if (ya === null || yb === null) continue;
      if (Math.max(ya, yb) < AXIS || Math.min(ya, yb) > this.size.height) continue;
      found.push([this.x(a, view), ya, this.x(b, view), yb, spans.task[after]]);
    }
    const isMany = found.length > MANY_LINKS;
    ink.strokeStyle = theme.link;
    ink.fillStyle = theme.link;
    for (const [xa, ya, xb, yb, task] of found) {
      const isChosen = selectedTask && history.tasks[task] === selectedTask;
      ink.globalAlpha = isChosen ? 1 : isMany ? 0.3 : 0.8;
      ink.lineWidth = isChosen ? 2.2 : isMany ? 0.8 : 1.3;
      const bend = Math.max(18, (xb - xa) * 0.5);
      ink.beginPath();
      ink.moveTo(xa, ya);
      ink.bezierCurveTo(xa + bend, ya, xb - bend, yb, xb, yb);
      ink.stroke();
      if (isMany && !isChosen) continue;
      ink.beginPath();
      ink.moveTo(xb, yb);
      ink.lineTo(xb - 6, yb - 3.5);
      ink.lineTo(xb - 6, yb + 3.5);
      ink.closePath();
      ink.fill();
    }
    ink.globalAlpha = 1;
    ink.lineWidth = 1;
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

  /** The names of a machine of parallel jobs: its processors are numbered where there is room. */
  processors({ vm, height }, y) {
    const { ink, theme, gutter } = this;
    ink.fillText("processors", 10, y + 7.5, gutter - 50);
    ink.fillStyle = theme.dim;
    ink.font = `11px ${theme.font}`;
    if (height >= 27) ink.fillText(`${vm.lanes}, ${vmState(vm, this.state.head) ?? "not yet"}`, 10, y + 21, gutter - 50);
    ink.textAlign = "right";
    const every = Math.max(1, Math.ceil(13 / this.rows.lane));
    for (let lane = 0; lane < vm.lanes; lane += every) {
      const middle = y + (lane + 0.5) * this.rows.lane;
      if (middle > AXIS && middle < this.size.height) ink.fillText(String(lane), gutter - 6, middle);
    }
    ink.textAlign = "left";
  }

  axis() {
    const { ink, theme } = this;
    const { view, run, head } = this.state;
    ink.fillStyle = theme.bg;
    ink.fillRect(0, 0, this.size.width, AXIS);
    ink.fillStyle = theme.axis;
    ink.fillRect(0, AXIS - 1, this.size.width, 1);
    ink.font = `11px ${theme.font}`;
    ink.textAlign = "center";
    ink.textBaseline = "middle";
    for (let t = Math.ceil(view.from / this.step) * this.step; t <= view.until; t += this.step) {
      const x = this.x(t, view);
      if (t < -1e-9 || x < this.gutter || x > this.size.width - 12) continue;
      ink.fillStyle = theme.dim;
      ink.fillText(timeLabel(t, this.step), x, 10);
      ink.fillStyle = theme.axis;
      ink.fillRect(Math.round(x), AXIS - 5, 1, 4);
    }
    const deadline = run?.deadline_s ? this.x(run.deadline_s, view) : -1;
    if (deadline > this.gutter && deadline < this.size.width) {
      this.tag(deadline, "deadline", theme.limit);
    }
    const at = this.x(head, view);
    if (at >= this.gutter && at <= this.size.width) {
      ink.fillStyle = theme.accent;
      ink.beginPath();
      ink.moveTo(at - 6, AXIS - 9);
      ink.lineTo(at + 6, AXIS - 9);
      ink.lineTo(at, AXIS);
      ink.closePath();
      ink.fill();
    }
  }

  tag(x, text, colour) {
    const { ink, theme } = this;
    ink.font = `600 11px ${theme.font}`;
    const wide = ink.measureText(text).width + 8;
    const left = Math.min(x - wide / 2, this.size.width - wide - 2);
    ink.fillStyle = theme.bg;
    ink.fillRect(left, 2, wide, 16);
    ink.fillStyle = colour;
    ink.textAlign = "left";
    ink.fillText(text, left + 4, 10);
  }
}
