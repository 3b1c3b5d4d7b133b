// Rows of the Gantt chart: hosts, the VMs on each, and their lanes, from top to bottom. Only those that
// can be seen are drawn; they are found by their tops.

import { upperBound } from "./columns.js";

/** Height of the axis at the top, in pixels. */
export const AXIS = 24;
const HOST = 24;
const GAP = 5;
const LOWEST_VM = 14;
const CREDITS = 14;

/** Heights of a lane that a reader can choose, in pixels; "auto" is whatever fills the chart. */
export const DENSITIES = { auto: 0, low: 4, medium: 9, high: 18 };

export class Rows {
  constructor() {
    this.entries = [];
    this.tops = new Float64Array(0);
    this.height = 0;
    this.lane = 12;
    this.of = new Map();
  }

  /**
   * Lays out the VMs that `isShown` lets through, by their hosts. `room` is the height of the chart,
   * `density` a key of DENSITIES.
   */
  lay(history, { isShown, room, density, isProcessors }) {
    const byHost = new Map([...history.hosts.keys()].map((id) => [id, []]));
    let [lanes, vms] = [0, 0];
    for (const vm of history.vms) {
      if (!isShown(vm)) continue;
      if (!byHost.has(vm.host)) byHost.set(vm.host, []);
      byHost.get(vm.host).push(vm);
      lanes += vm.lanes;
      vms += 1;
    }
    const hosts = [...byHost].filter(([, list]) => list.length);
    const free = room - AXIS - hosts.length * HOST - vms * GAP - 12;
    const least = isProcessors ? 3 : 7;
    this.lane = DENSITIES[density] || Math.max(least, Math.min(20, Math.floor(free / Math.max(1, lanes))));
    this.entries = [];
    this.of = new Map();
    let top = AXIS + 4;
    for (const [id, list] of hosts) {
      this.entries.push({ kind: "host", host: history.hosts.get(id), id, vms: list.length, top, height: HOST });
      top += HOST;
      for (const vm of list) {
        const credits = vm.credits && this.lane >= 6 ? CREDITS : 0;
        const height = Math.max(LOWEST_VM, vm.lanes * this.lane + credits);
        const entry = { kind: "vm", vm, top, height, credits };
        this.of.set(vm.index, entry);
        this.entries.push(entry);
        top += height + GAP;
      }
    }
    this.height = top + 8;
    this.tops = Float64Array.from(this.entries, (entry) => entry.top);
  }

  /** Index of the first entry that reaches below `y`. */
  firstAt(y) {
    return Math.max(0, upperBound(this.tops, this.tops.length, y) - 1);
  }

  /** The entry at a height, if one is there. */
  at(y) {
    const entry = this.entries[this.firstAt(y)];
    return entry && y >= entry.top && y < entry.top + entry.height ? entry : null;
  }

  /** Top and height of a lane's part of a tier, below its VM's top. */
  part(lane, isBackground, hasBackground) {
    const top = lane * this.lane;
    if (!hasBackground) return [top, this.lane - Math.min(1, this.lane * 0.12)];
    return isBackground ? [top + this.lane * 0.62, this.lane * 0.3] : [top, this.lane * 0.6];
  }
}
