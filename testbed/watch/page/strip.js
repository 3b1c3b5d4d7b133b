// The vCPUs of a host and the VMs of customers on them, one after another: what a provider's chart has in place of a
// row for each VM. A VM gets the lowest free vCPUs when it is ready, side by side if there are as many, and gives
// them back when it ends or hibernates. Which vCPUs of a host a VM really runs on is the kernel's choice and not shown.

import { Column } from "./columns.js";
import { MARKETS } from "./market.js";

/** Narrowest mean width of a VM on a vCPU, in pixels, with which each VM is drawn; below, only how many vCPUs are used is. */
const READABLE_PX = 9;
/** Width of the columns in which that is drawn, in pixels. */
const COLUMN_PX = 3;

/** The pieces on one vCPU: times at which they begin and end, and their VMs, in order. */
class StripLane {
  constructor() {
    this.from = new Column(8);
    this.until = new Column(8);
    this.pieces = [];
    this.isFree = true;
  }

  /** Index of the first piece that ends after a time, from index `low` on. */
  firstAfter(time, low = 0) {
    let high = this.pieces.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.until.values[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export class Strip {
  constructor(vcpus) {
    this.lanes = Array.from({ length: vcpus ?? 0 }, () => new StripLane());
    this.vms = 0;
  }

  /** Gives a VM its vCPUs from a time on; true if the strip has become higher. */
  place(vm, time) {
    const before = this.lanes.length;
    const slots = this.freeSlots(Math.max(1, vm.vcpus));
    vm.piece = { vm, slots, strip: this };
    for (const slot of slots) {
      const lane = this.lanes[slot];
      lane.isFree = false;
      lane.from.push(time);
      lane.until.push(Infinity);
      lane.pieces.push(vm.piece);
    }
    return this.lanes.length > before;
  }

  /** Takes the vCPUs of a VM back; nothing if it has none. */
  release(vm, time) {
    for (const slot of vm.piece?.slots ?? []) {
      const lane = this.lanes[slot];
      lane.until.set(lane.until.length - 1, time);
      lane.isFree = true;
    }
    vm.piece = null;
  }

  freeSlots(wanted) {
    let run = 0;
    const free = [];
    for (let slot = 0; slot < this.lanes.length; slot += 1) {
      run = this.lanes[slot].isFree ? run + 1 : 0;
      if (this.lanes[slot].isFree) free.push(slot);
      if (run === wanted) return Array.from({ length: wanted }, (_, n) => slot - wanted + 1 + n);
    }
    // More VMs than vCPUs: the host is overcommitted.
    while (free.length < wanted) {
      free.push(this.lanes.length);
      this.lanes.push(new StripLane());
    }
    return free.slice(0, wanted);
  }

  /** The VM on a lane at a time, or null. */
  vmAt(lane, time) {
    const pieces = this.lanes[lane];
    if (!pieces) return null;
    const n = pieces.firstAfter(time);
    return n < pieces.pieces.length && pieces.from.values[n] <= time ? pieces.pieces[n].vm : null;
  }
}

/**
 * The vCPUs of a strip that VMs of each market use on average between each two of these times, in the order of MARKETS.
 * VMs that are still there use theirs until `edge`.
 */
export function vcpusUsed(strip, times, edge) {
  const parts = times.length - 1;
  const used = MARKETS.map(() => new Float64Array(parts));
  for (const lane of strip.lanes) {
    let part = 0;
    for (let n = lane.firstAfter(times[0]); n < lane.pieces.length && lane.from.values[n] < times[parts]; n += 1) {
      const [from, until] = [lane.from.values[n], Math.min(lane.until.values[n], edge)];
      const sums = used[lane.pieces[n].vm.sale.colour];
      while (part < parts && times[part + 1] <= from) part += 1;
      for (let k = part; k < parts && times[k] < until; k += 1) {
        const common = Math.min(until, times[k + 1]) - Math.max(from, times[k]);
        sums[k] += Math.max(0, common) / (times[k + 1] - times[k] || 1);
      }
    }
  }
  return used;
}

/** Whether so many VMs are in the window of a chart that they would be drawn as a carpet. */
export function isCrowded({ gutter, size, state: { view } }, strip) {
  let pieces = 0;
  for (const lane of strip.lanes) pieces += lane.firstAfter(view.until) - lane.firstAfter(view.from);
  return pieces * READABLE_PX > (size.width - gutter) * strip.lanes.length;
}

/** Draws how many of a host's vCPUs VMs of each market use, from the bottom up, and the outline of the VM that is selected. */
function drawUse(gantt, strip, y) {
  const { ink, gutter, size, theme, rows: { lane: high } } = gantt;
  const { view, selected } = gantt.state;
  const columns = Math.ceil((size.width - gutter) / COLUMN_PX);
  const times = Array.from({ length: columns + 1 }, (_, n) => gantt.timeAt(gutter + n * COLUMN_PX, view));
  const used = vcpusUsed(strip, times, gantt.edge);
  const bottom = y + strip.lanes.length * high;
  for (let n = 0; n < columns; n += 1) {
    let top = bottom;
    MARKETS.forEach(({ colour }, market) => {
      const part = used[market][n] * high;
      if (!part) return;
      ink.fillStyle = theme.work[colour];
      ink.fillRect(gutter + n * COLUMN_PX, top - part, COLUMN_PX, part);
      top -= part;
      gantt.drawn += 1;
    });
  }
  if (!selected?.startsWith("vm")) return;
  const chosen = Number(selected.slice(2));
  strip.lanes.forEach((lane, n) => lane.pieces.forEach(({ vm, slots }, k) => {
    const blocks = vm.id === chosen ? block(slots, n) : 0;
    if (blocks) gantt.customer(vm, { from: lane.from.values[k], until: Math.min(lane.until.values[k], gantt.edge) }, y + n * high, blocks * high);
  }));
}

/** How many of a piece's lanes lie side by side from this one down; 0 if it is not the first of them. */
function block(slots, lane) {
  if (slots.includes(lane - 1)) return 0;
  let high = 1;
  while (slots.includes(lane + high)) high += 1;
  return high;
}

/**
 * Draws a strip whose top is at `y`: each VM where it has its vCPUs, in the colour of its market, or, of very many, how many
 * vCPUs they use. Pieces narrower than a pixel are drawn once, as one dense bar.
 */
export function drawStrip(gantt, { strip }, y) {
  const { ink, rows: { lane: high }, theme } = gantt;
  const { view } = gantt.state;
  const dense = theme.work[theme.work.length - 1];
  ink.fillStyle = theme.life;
  ink.fillRect(gantt.gutter, y, gantt.size.width - gantt.gutter, strip.lanes.length * high);
  if (isCrowded(gantt, strip)) {
    gantt.isCrowded = true;
    drawUse(gantt, strip, y);
    return;
  }
  strip.lanes.forEach((lane, n) => {
    const top = y + n * high;
    if (top > gantt.size.height || top + high < 0) return;
    let k = lane.firstAfter(view.from);
    while (k < lane.pieces.length && lane.from.values[k] <= view.until) {
      const [from, until] = [lane.from.values[k], Math.min(lane.until.values[k], gantt.edge)];
      const left = gantt.x(from, view);
      if (gantt.x(until, view) - left < 1) {
        ink.fillStyle = dense;
        ink.fillRect(Math.floor(left), top, 1, high);
        gantt.drawn += 1;
        k = lane.firstAfter(gantt.timeAt(Math.floor(left) + 1, view), k + 1);
        continue;
      }
      const blocks = block(lane.pieces[k].slots, n);
      if (blocks) gantt.customer(lane.pieces[k].vm, { from, until }, top, blocks * high - Math.min(1, high * 0.15));
      k += 1;
    }
  });
}
