// The history of a run, made from the server's changes in their order. It only grows; what was so at
// some time is asked of it by the functions of moment.js. Spans of work are columns, and each lane of a
// VM has the numbers of its spans: they do not overlap there, so that what is seen is found by searching.

import { Column, Series } from "./columns.js";
import { marketOf, usesHost } from "./market.js";
import { Strip } from "./strip.js";
import { kindOf } from "./words.js";

/** Whether somebody who looked on wanted an act; the provider gives its reason as well ("provider: above the bid"). */
export function isOfUser(act) {
  return act.by === "user" || act.by.startsWith("user:");
}

/** States of a task. */
export const WAITING = 1;
export const RUNNING = 2;
export const DONE = 3;

/** Ends of attempts after which their tasks are over. */
const OVER = new Set(["done", "verified", "reported", "program-failed"]);

export const FOREGROUND = 0;
export const BACKGROUND = 1;

/** The attempts of tasks: which seats they held from when until when. */
class Spans {
  constructor() {
    this.from = new Column(1024);
    this.until = new Column(1024);
    this.vm = [];
    this.task = [];
    this.lanes = [];
    this.tier = [];
    this.attempt = [];
    this.how = [];
    this.reason = [];
    this.part = [];
    // Changes of burst and baseline mode as [time, mode, time, mode, ...]; most spans have one.
    this.modes = [];
  }

  get length() {
    return this.from.length;
  }
}

export class History {
  constructor() {
    this.hosts = new Map();
    this.vms = [];
    this.tasks = [];
    this.kinds = new Map();
    this.spans = new Spans();
    this.prices = new Map();
    this.available = new Map();
    this.acts = [];
    this.checkpoints = 0;
    this.links = [];
    this.linkEnds = new Column();
    this.longestLink = 0;
    this.fidelity = { times: new Column(), errors: new Column(), sums: new Column(), worst: new Column(), tasks: [] };
    this.samples = Object.fromEntries(
      ["times", "waiting", "running", "done", "spot", "ondemand", "cost", "rate", "failed", "terminated"].map((name) => [name, new Column()]),
    );
    this.over = null;
    /** The time of the last change, in seconds of the run. */
    this.lastTime = 0;
    /** How many changes there were. */
    this.changes = 0;
    /** Grows whenever rows of the chart come or change. */
    this.shape = 0;
    this.hasBackground = false;
    this.hasCredits = false;
    this.vmOf = new Map();
    this.taskOf = new Map();
    this.vmOfRequest = new Map();
    /** The markets of which there have been VMs. */
    this.markets = new Set();
    /** The types of VMs by their names, and whether all VMs are customers': what a run's description says. */
    this.types = null;
    this.isProvider = false;
    /** The vCPUs of hosts with the VMs of customers on them, by host. */
    this.strips = new Map();
    /** vCPUs in use over time, by market. */
    this.usage = Object.fromEntries(["times", "ondemand", "spot", "burstable"].map((name) => [name, new Column()]));
  }

  /** Takes what a run's description says, before its first change. */
  describe(run) {
    this.types = run.types ?? null;
    this.isProvider = run.task_noun === "request";
  }

  /** Takes changes in order; kinds that this page does not know are left out. */
  apply(changes) {
    for (const change of changes) {
      this.changes += 1;
      if (typeof change[1] === "number" && change[1] > this.lastTime) this.lastTime = change[1];
      TAKE[change[0]]?.(this, change);
    }
  }

  vm(id) {
    return this.vms[this.vmOf.get(id) ?? -1];
  }

  task(id) {
    return this.tasks[this.taskOf.get(id) ?? -1];
  }

  /** The task's entry, which is made where its submission was not told. */
  taskFor(id, time) {
    return this.task(id) ?? this.submit(time, id, id, 1, null);
  }

  submit(time, id, number, processes, name) {
    const kind = name ? kindOf(name) : "";
    if (!this.kinds.has(kind)) this.kinds.set(kind, this.kinds.size);
    const task = { id, index: this.tasks.length, number, processes, name, kind, submitted: time };
    Object.assign(task, { times: [time], states: [WAITING], spans: [] });
    this.taskOf.set(id, task.index);
    this.tasks.push(task);
    return task;
  }

  enter(task, time, state) {
    task.times.push(time);
    task.states.push(state);
  }

  /** The task's attempt that still holds its seats; -1 if there is none. */
  openSpan(task) {
    const span = task.spans[task.spans.length - 1];
    return span !== undefined && this.spans.until.at(span) === Infinity ? span : -1;
  }

  close(task, span, time, how) {
    this.spans.until.set(span, time);
    this.spans.how[span] = how;
    // However else an attempt ends, its task waits for the next one.
    this.enter(task, time, OVER.has(how) ? DONE : WAITING);
  }

  /** A VM of this market uses so many vCPUs more from a time on. */
  use(time, market, vcpus) {
    const { usage } = this;
    const n = usage.times.length - 1;
    if (n >= 0 && usage.times.at(n) === time) {
      usage[market].set(n, usage[market].at(n) + vcpus);
      return;
    }
    for (const name of ["ondemand", "spot", "burstable"]) usage[name].push((usage[name].last ?? 0) + (name === market ? vcpus : 0));
    usage.times.push(time);
  }

  /** A VM takes its vCPUs of its host, or gives them back. */
  occupy(vm, time, isThere) {
    if (vm.isThere === isThere) return;
    vm.isThere = isThere;
    this.use(time, vm.sale.key, isThere ? vm.vcpus : -vm.vcpus);
    if (!vm.isCustomers) return;
    let strip = this.strips.get(vm.host);
    if (!strip) {
      strip = new Strip(this.hosts.get(vm.host)?.vcpus);
      this.strips.set(vm.host, strip);
      this.shape += 1;
    }
    if (!isThere) strip.release(vm, time);
    else if (strip.place(vm, time)) this.shape += 1;
  }

  seriesOf(map, key) {
    let series = map.get(key);
    if (!series) {
      series = new Series();
      map.set(key, series);
    }
    return series;
  }
}

function lanesOf(vm, tier, lane) {
  const lanes = tier === BACKGROUND ? vm.background : vm.foreground;
  while (lanes.length <= lane) lanes.push([]);
  return lanes[lane];
}

function start(history, [, time, id, attempt, vmId, lanes, tier, reason, part, mode]) {
  const vm = history.vm(vmId);
  if (!vm) return;
  const task = history.taskFor(id, time);
  const open = history.openSpan(task);
  if (open >= 0) history.close(task, open, time, "moved");
  const { spans } = history;
  const span = spans.length;
  const before = task.spans[task.spans.length - 1];
  spans.from.push(time);
  spans.until.push(Infinity);
  spans.vm.push(vm.index);
  spans.task.push(task.index);
  spans.lanes.push(lanes);
  spans.tier.push(tier === "bg" ? BACKGROUND : FOREGROUND);
  spans.attempt.push(attempt);
  spans.how.push(null);
  spans.reason.push(reason ?? "");
  spans.part.push(part ?? null);
  spans.modes.push([time, mode ?? "burst"]);
  if (tier === "bg" && !history.hasBackground) {
    history.hasBackground = true;
    history.shape += 1;
  }
  for (const lane of lanes) {
    if (lane >= vm.lanes) {
      vm.lanes = lane + 1;
      history.shape += 1;
    }
    lanesOf(vm, spans.tier[span], lane).push(span);
  }
  task.spans.push(span);
  history.enter(task, time, RUNNING);
  link(history, before, span);
}

/** Work that went on elsewhere: it took along what it had done. */
function link(history, before, span) {
  const { spans } = history;
  if (before === undefined) return;
  const isElsewhere = spans.vm[before] !== spans.vm[span] || spans.how[before] === "moved";
  if (!isElsewhere || (spans.part[span] === null && spans.how[before] !== "moved")) return;
  const gap = spans.from.at(span) - spans.until.at(before);
  history.longestLink = Math.max(history.longestLink, gap);
  history.links.push([before, span]);
  history.linkEnds.push(spans.from.at(span));
}

function stop(history, [, time, id, attempt, how]) {
  const task = history.task(id);
  if (!task) return;
  const span = history.openSpan(task);
  if (span >= 0 && history.spans.attempt[span] === attempt) history.close(task, span, time, how);
}

function endVm(history, [, time, id, why]) {
  const vm = history.vm(id);
  if (!vm) return;
  vm.until = time;
  vm.why = why;
  history.occupy(vm, time, false);
  const { spans } = history;
  for (const lanes of [vm.foreground, vm.background]) {
    for (const lane of lanes) {
      const span = lane[lane.length - 1];
      if (span === undefined || spans.until.at(span) !== Infinity) continue;
      history.close(history.tasks[spans.task[span]], span, time, "vm-gone");
    }
  }
}

function fidelity(history, [, time, id, promised, took]) {
  const error = promised > 0 ? took / promised - 1 : 0;
  const f = history.fidelity;
  f.sums.push((f.sums.last ?? 0) + error);
  // The worst with its sign.
  const worst = f.worst.last ?? 0;
  f.worst.push(Math.abs(error) > Math.abs(worst) ? error : worst);
  f.times.push(time);
  f.errors.push(error);
  f.tasks.push(id);
}

const TAKE = {
  host: (history, [, time, id, name, vcpus, memory]) => {
    history.hosts.set(id, { id, name, vcpus, memory, from: time, until: Infinity, why: "" });
    history.shape += 1;
  },
  "host-lost": (history, [, time, id, why]) => {
    const host = history.hosts.get(id);
    if (host) Object.assign(host, { until: time, why });
  },
  vm: (history, [, time, id, type, market, vcpus, host, usd, bid, tenant, request]) => {
    const vm = { id, index: history.vms.length, type, market, vcpus, host, usd, bid, tenant, request: request ?? null };
    Object.assign(vm, { sale: marketOf(type, market, history.types), piece: null, isThere: false });
    vm.isCustomers = vm.tenant ? vm.tenant === "requests" : history.isProvider;
    Object.assign(vm, { from: time, until: Infinity, why: "", lanes: Math.max(1, vcpus), credits: null });
    Object.assign(vm, { stateTimes: [time], states: ["boot"], foreground: [], background: [] });
    Object.assign(vm, { checkpointTimes: new Column(4), checkpoints: [], acts: [] });
    history.vmOf.set(id, vm.index);
    if (vm.request !== null) history.vmOfRequest.set(vm.request, id);
    history.vms.push(vm);
    history.markets.add(vm.sale.key);
    // A customer's VM has no row of its own.
    if (!vm.isCustomers) history.shape += 1;
  },
  "vm-state": (history, [, time, id, state]) => {
    const vm = history.vm(id);
    if (!vm) return;
    vm.stateTimes.push(time);
    vm.states.push(state);
    if (vm.until === Infinity) history.occupy(vm, time, usesHost(state));
  },
  "vm-end": endVm,
  price: (history, [, time, type, usd]) => history.seriesOf(history.prices, type).push(time, usd),
  available: (history, [, time, type, n]) => history.seriesOf(history.available, type).push(time, n),
  credits: (history, [, time, id, balance]) => {
    const vm = history.vm(id);
    if (!vm) return;
    if (!vm.credits) {
      vm.credits = new Series();
      history.hasCredits = true;
      history.shape += 1;
    }
    vm.credits.push(time, balance);
  },
  submit: (history, [, time, id, number, processes, name]) => {
    if (!history.task(id)) history.submit(time, id, number, processes, name ?? null);
  },
  start,
  mode: (history, [, time, id, mode]) => {
    const task = history.task(id);
    const span = task ? history.openSpan(task) : -1;
    if (span >= 0) history.spans.modes[span].push(time, mode);
  },
  stop,
  checkpoint: (history, [, time, id, vmId, size, held, part]) => {
    const vm = history.vm(vmId);
    const task = history.task(id);
    if (!vm || !task) return;
    history.checkpoints += 1;
    vm.checkpointTimes.push(time);
    vm.checkpoints.push({ task: task.index, size, held, part });
  },
  act: (history, [, time, action, target, vms, by]) => {
    const act = { time, action, target, vms, by };
    history.acts.push(act);
    for (const id of vms) history.vm(id)?.acts.push(act);
  },
  fidelity,
  sample: (history, [, time, waiting, running, done, spot, ondemand, cost, rate, failed = 0, terminated = 0]) => {
    const row = { times: time, waiting, running, done, spot, ondemand, cost, rate, failed, terminated };
    for (const [name, value] of Object.entries(row)) history.samples[name].push(value);
  },
  over: (history, [, time, complete, cancelled]) => {
    history.over = { time, complete, cancelled };
  },
};
