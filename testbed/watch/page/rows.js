// Rows of the Gantt chart: hosts, the vCPUs of each that customers' VMs have, the other VMs there, and their lanes, from
// top to bottom. Only those that can be seen are drawn; they are found by their tops.

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
    this.stripOf = new Map();
  }

  /**
   * Lays out the VMs that `isShown` lets through on the hosts that `isHostShown` does. `room` is the height of the
   * chart, `density` a key of DENSITIES.
   */
  lay(history, { isShown, isHostShown, room, density, isProcessors }) {
    const byHost = new Map([...history.hosts.keys()].filter(isHostShown).map((id) => [id, []]));
    let [lanes, vms] = [0, 0];
    for (const vm of history.vms) {
      if (vm.isCustomers || !isHostShown(vm.host) || !isShown(vm)) continue;
      if (!byHost.has(vm.host)) byHost.set(vm.host, []);
      byHost.get(vm.host).push(vm);
      lanes += vm.lanes;
      vms += 1;
    }
    const strips = new Map([...history.strips].filter(([host]) => isHostShown(host)));
    for (const [host, strip] of strips) {
      if (!byHost.has(host)) byHost.set(host, []);
      lanes += strip.lanes.length;
      vms += 1;
    }
    const hosts = [...byHost].filter(([id, list]) => list.length || strips.has(id));
    const free = room - AXIS - hosts.length * HOST - vms * GAP - 12;
    const least = isProcessors ? 3 : 7;
    this.lane = DENSITIES[density] || Math.max(least, Math.min(20, Math.floor(free / Math.max(1, lanes))));
    this.entries = [];
    this.of = new Map();
    this.stripOf = new Map();
    let top = AXIS + 4;
    for (const [id, list] of hosts) {
      this.entries.push({ kind: "host", host: history.hosts.get(id), id, vms: list.length, top, height: HOST });
      top += HOST;
      const strip = strips.get(id);
      if (strip) {
        const height = strip.lanes.length * this.lane;
        this.entries.push({ kind: "strip", strip, host: id, top, height });
        this.stripOf.set(id, this.entries.at(-1));
        top += height + GAP;
      }
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

  /** Where a VM is drawn: its own entry, or that of its host's vCPUs. */
  entryOf(vm) {
    return vm.isCustomers ? this.stripOf.get(vm.host) : this.of.get(vm.index);
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
