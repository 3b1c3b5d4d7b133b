// How much of their hosts the VMs of each market use: at a time, or on average over a run that is over.

import { MARKETS, usesHost } from "./market.js";
import { vmState } from "./moment.js";

/** What VMs use of one host, or of several: vCPUs by market, and how many VMs there are. */
export class Usage {
  constructor() {
    Object.assign(this, { ondemand: 0, spot: 0, burstable: 0, vms: 0 });
  }

  get vcpus() {
    return this.ondemand + this.spot + this.burstable;
  }

  add(other) {
    for (const { key } of MARKETS) this[key] += other[key];
    this.vms += other.vms;
  }
}

function usageOf(map, host) {
  let usage = map.get(host);
  if (!usage) map.set(host, usage = new Usage());
  return usage;
}

function usageAt(history, time) {
  const found = new Map();
  for (const vm of history.vms) {
    if (vm.from > time || time >= vm.until) continue;
    const usage = usageOf(found, vm.host);
    usage.vms += 1;
    if (usesHost(vmState(vm, time))) usage[vm.sale.key] += vm.vcpus;
  }
  return found;
}

/** The mean use from the beginning of a run to its end. Its VMs are all that there were. */
function meanUsage(history, end) {
  const found = new Map();
  for (const vm of history.vms) {
    const usage = usageOf(found, vm.host);
    usage.vms += 1;
    vm.states.forEach((state, n) => {
      const until = Math.min(vm.stateTimes[n + 1] ?? Infinity, vm.until, end);
      const lasts = usesHost(state) ? Math.max(0, until - vm.stateTimes[n]) : 0;
      usage[vm.sale.key] += (vm.vcpus * lasts) / end;
    });
  }
  return found;
}

/** The last answer of usageShown(), which the map, the cards and the tables ask for at one playhead. */
const last = { history: null, changes: -1, head: -1, answer: null };

/**
 * What VMs use of each host at the playhead: {byHost, isMean}. At the end of a run that is over nothing is used any more,
 * and what is shown is the mean of the whole run.
 */
export function usageShown({ history, head }) {
  if (last.history === history && last.changes === history.changes && last.head === head) return last.answer;
  const end = history.over?.time ?? Infinity;
  const isMean = end > 0 && head >= end - 1e-6;
  const answer = { byHost: isMean ? meanUsage(history, end) : usageAt(history, head), isMean };
  Object.assign(last, { history, changes: history.changes, head, answer });
  return answer;
}

/** The hosts that have joined by a time and whose vCPUs are limited: of others there is no share. */
export function boundedHosts(history, time = Infinity) {
  return [...history.hosts.values()].filter((host) => host.vcpus > 0 && host.from <= time);
}

/** What VMs use of all hosts with a limit at the playhead, beside the vCPUs of those hosts; null if there are none. */
export function wholeUsage(state) {
  const { byHost, isMean } = usageShown(state);
  const hosts = boundedHosts(state.history, state.head).filter((host) => isMean || state.head < host.until);
  if (!hosts.length) return null;
  const all = new Usage();
  let [capacity, full, idle] = [0, 0, 0];
  for (const host of hosts) {
    const usage = byHost.get(host.id) ?? new Usage();
    all.add(usage);
    capacity += host.vcpus;
    if (usage.vcpus >= host.vcpus) full += 1;
    if (!usage.vcpus) idle += 1;
  }
  return { all, capacity, full, idle, hosts: hosts.length, isMean };
}
