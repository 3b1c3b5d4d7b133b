// The parts of the page that need no browser: what it makes of changes, and what it answers of a time.
import { test } from "node:test";
import assert from "node:assert/strict";

import { Column, Series, lowerBound, upperBound } from "./columns.js";
import { DONE, History, RUNNING, WAITING, isOfUser } from "./history.js";
import { Playhead, RunClock } from "./clock.js";
import { howEnded } from "./hit.js";
import { SCALES, View } from "./view.js";
import { marketOf, marketWords, vmsByMarket } from "./market.js";
import { nameOf } from "./find.js";
import { isCrowded, vcpusUsed } from "./strip.js";
import { usageShown, wholeUsage } from "./usage.js";
import {
  MOST_LINKS, fidelityAt, figuresAt, linksIn, missingWords, outcomesAt, runningOn, seatsTaken, spanAt, taskState, verdictWords, vmState,
  vmsAt, waitedFor, waitingAt,
} from "./moment.js";
import { bytes, clock, costWord, count, hostMemory, hostVcpus, money, percent, rate, short, span, timeLabel, timeStep } from "./words.js";

const RUN = [
  ["host", 0, 1, "w1", 8, 2 ** 34],
  ["submit", 0, 10, 1, 1, "small-1"],
  ["submit", 0, 11, 2, 2, "small-2"],
  ["vm", 1, 3, "c3.large", "spot", 2, 1, 0.03, 0.1, null],
  ["vm", 1, 4, "c3.large", "on-demand", 2, 1, 0.1, null, null],
  ["sample", 1, 2, 0, 0, 1, 1, 0, 0.13],
  ["vm-state", 10, 3, "running"],
  ["vm-state", 10, 4, "running"],
  ["start", 12, 10, 1, 3, [0], "fg", "first", null, "burst"],
  ["start", 12, 11, 1, 4, [0, 1], "bg", "beside", null, "burst"],
  ["mode", 20, 10, "baseline"],
  ["checkpoint", 25, 10, 3, 1000, 0.5, 0.4],
  ["act", 30, "hibernate", "vm 3", [3], "user: why not"],
  ["vm-state", 30, 3, "hibernated"],
  ["stop", 40, 10, 1, "stopped"],
  ["start", 45, 10, 2, 4, [0], "fg", "from its checkpoint", 0.4, "burst"],
  ["news-of-another-version", 46, {}],
  ["stop", 60, 11, 1, "done"],
  ["fidelity", 60, 11, 50, 51],
  ["stop", 70, 10, 2, "done"],
  ["fidelity", 70, 10, 100, 97],
  ["vm-end", 80, 3, "terminated"],
  ["over", 90, true, null],
];

function whole(pieces = [RUN]) {
  const history = new History();
  for (const piece of pieces) history.apply(piece);
  return history;
}

test("a history is the same however its changes are parted", () => {
  const parted = whole(RUN.map((change) => [change]));
  assert.deepEqual(parted, whole());
  assert.equal(parted.changes, RUN.length);
  assert.equal(parted.lastTime, 90);
});

test("states of VMs and tasks are those of the time that is asked for", () => {
  const history = whole();
  const [vm, task, other] = [history.vm(3), history.task(10), history.task(11)];
  assert.deepEqual([0.5, 1, 9, 10, 30, 79, 80].map((t) => vmState(vm, t)),
    [null, "boot", "boot", "running", "hibernated", "hibernated", "ended"]);
  assert.deepEqual([-1, 0, 12, 40, 45, 70].map((t) => taskState(task, t)), [0, WAITING, RUNNING, WAITING, RUNNING, DONE]);
  assert.deepEqual([11, 42, 50, 95].map((t) => waitingAt(history, t).map((w) => w.id)), [[10, 11], [10], [], []]);
  assert.equal(waitedFor(task, 43), 3);
  assert.equal(spanAt(history, task, 42), -1);
  assert.equal(history.spans.attempt[spanAt(history, task, 50)], 2);
  assert.deepEqual(runningOn(history, history.vm(4), 50).map((n) => history.spans.task[n]), [task.index, other.index]);
  assert.equal(seatsTaken(history, history.vm(4), 50), 1);
  assert.equal(seatsTaken(history, vm, 42), 0);
  assert.equal(vm.checkpoints.length, 1);
  assert.deepEqual(vm.acts.map((act) => act.by), ["user: why not"]);
});

test("a VM is there from its launch until its end, whatever it does", () => {
  const history = whole();
  const there = (time) => vmsByMarket(vmsAt(history, time));
  // It boots at 1, is hibernated at 30 and has ended at 80.
  assert.deepEqual([0.5, 1, 30, 79].map((time) => there(time).spot), [0, 1, 1, 1]);
  assert.deepEqual(there(80), { ondemand: 1, spot: 0, burstable: 0 });
});

test("work that goes on elsewhere is linked, work that begins anew is not", () => {
  const history = whole();
  assert.deepEqual(history.links, [[0, 2]]);
  assert.equal(history.longestLink, 5);
  const isAgain = (change) => change[0] === "start" && change[3] === 2;
  const anew = whole([RUN.map((change) => (isAgain(change) ? [...change.slice(0, 8), null, "burst"] : change))]);
  assert.deepEqual(anew.links, []);
});

test("what runs on a VM that ends waits again", () => {
  const history = whole([RUN.slice(0, 9), [["vm-end", 15, 3, "host-lost"]]]);
  assert.equal(taskState(history.task(10), 15), WAITING);
  assert.equal(history.spans.how[0], "vm-gone");
  // Its stop may still be told, and is no second one.
  history.apply([["stop", 15, 10, 1, "vm-gone"]]);
  assert.equal(history.task(10).states.length, 3);
});

test("a program that failed is over, and is called neither done nor waiting", () => {
  const history = whole();
  const started = [["submit", 91, 12, 3, 1, "fails"], ["start", 92, 12, 1, 4, [0], "fg", "first", null, "burst"]];
  history.apply([...started, ["stop", 95, 12, 1, "program-failed"], ["sample", 95, 0, 0, 2, 1, 1, 0, 0.13, 1]]);
  const task = history.task(12);
  assert.equal(task.states.at(-1), DONE);
  assert.equal(figuresAt(history, 95).failed, 1);
  assert.equal(howEnded("program-failed"), "its program failed");
  assert.equal(howEnded("reported"), "reported done by its worker");
});

test("costs grow between samples, and stop with the run", () => {
  const history = whole();
  assert.equal(figuresAt(history, 0.5), null);
  assert.ok(Math.abs(figuresAt(history, 37).cost - (0.13 * 36) / 3600) < 1e-12);
  assert.equal(figuresAt(history, 90).cost, figuresAt(history, 500).cost);
});

test("the markets of a provider's customers have the words of its reports", () => {
  const usage = { ondemand: 12, spot: 16, burstable: 0 };
  assert.equal(marketWords(usage, String, { isProvider: true }), "12 normal, 16 preemptible");
  assert.equal(marketWords(usage, String, { isProvider: false }), "12 on demand, 16 spot");
});

test("requests that failed are not done", () => {
  const history = whole([[["sample", 1, 2, 5, 1700, 3, 2, 10, 0.5, 73], ["sample", 2, 2, 5, 1701, 3, 2, 10, 0.5]]]);
  const { done, failed, running } = figuresAt(history, 1);
  assert.deepEqual([done, failed, running], [1700, 73, 5]);
  // A log of before says of none that it failed.
  assert.equal(figuresAt(history, 2).failed, 0);
  history.apply([["sample", 3, 2, 5, 1701, 3, 2, 10, 0.5, 73, 12]]);
  const { failed: refused, terminated } = outcomesAt(history, 3, "request");
  assert.deepEqual([refused, terminated], [73, 12], "whose VM ended early has not failed: it was terminated");
});

test("a host without limits is said to have none, and a provider with customers alone has a revenue", () => {
  const host = { vcpus: 33, memory: null };
  assert.deepEqual([hostVcpus(host), hostMemory(host)], ["33 vCPUs", "without limit"]);
  assert.deepEqual([hostVcpus({ vcpus: null }), hostMemory({ memory: 2 ** 34 })], ["vCPUs without limit", "16.0 GiB"]);
  assert.deepEqual(["task", "job", "request"].map((task_noun) => costWord({ task_noun })), ["cost", "cost", "revenue"]);
});

test("fidelity is of the attempts that have ended by then", () => {
  const history = whole();
  assert.equal(fidelityAt(history, 59), null);
  assert.deepEqual(fidelityAt(history, 60), { ended: 1, mean: 51 / 50 - 1, worst: 51 / 50 - 1 });
  const both = fidelityAt(history, 90);
  assert.ok(Math.abs(both.mean + 0.005) < 1e-12 && Math.abs(both.worst + 0.03) < 1e-12);
});

test("columns grow, and are searched as their order says", () => {
  const column = new Column(2);
  for (const value of [1, 2, 2, 5]) column.push(value);
  assert.equal(column.last, 5);
  assert.deepEqual([0, 2, 3, 9].map((v) => upperBound(column.values, column.length, v)), [0, 3, 3, 4]);
  assert.deepEqual([0, 2, 3, 9].map((v) => lowerBound(column.values, column.length, v)), [0, 1, 3, 4]);
  const series = new Series();
  series.push(1, 10);
  series.push(1, 11);
  series.push(4, 12);
  assert.deepEqual([0, 1, 3.9, 4].map((t) => series.at(t)), [undefined, 11, 11, 12]);
});

test("the clock never goes back, and not far beyond what was heard", () => {
  const run = new RunClock();
  run.news({ clock_s: 100, coordinator: "serving", over: false }, 30);
  const at = run.heardAt;
  assert.equal(run.at(at, 0), 100);
  assert.ok(Math.abs(run.at(at + 500, 0) - 115) < 1e-6);
  assert.equal(run.at(at + 60000, 0), 130);
  run.news({ clock_s: 120, coordinator: "away", over: false }, 30);
  assert.equal(run.at(run.heardAt + 900, 0), 130);
  assert.equal(run.at(run.heardAt, 140), 140);
});

test("a playhead that plays comes to the edge and stays with it", () => {
  const playhead = new Playhead();
  playhead.goTo(10);
  playhead.play(60);
  // The real clock has no round numbers.
  assert.ok(Math.abs(playhead.tick(playhead.last + 1000, 1000) - 70) < 1e-6);
  assert.equal(playhead.tick(playhead.last + 60000, 1000), 1000);
  assert.ok(playhead.isLive && !playhead.isPlaying);
});

test("zooming keeps the time under the pointer, and the run stays in sight", () => {
  const view = new View();
  view.showAll(1000);
  view.zoom(0.5, 400, 1000);
  assert.ok(Math.abs((400 - view.from) / view.span - 400 / 1040) < 1e-9);
  for (let n = 0; n < 200; n += 1) view.pan(500, 1000);
  assert.ok(view.from < 1000);
  for (let n = 0; n < 200; n += 1) view.pan(-500, 1000);
  assert.ok(view.until > 0);
  for (let n = 0; n < 200; n += 1) view.zoom(0.5, 100, 1000);
  assert.ok(view.span > 0);
});

test("numbers have their units", () => {
  assert.deepEqual([0, 59.9, 725, 3725, 90061].map(clock), ["0 s", "59 s", "12 min 05 s", "1 h 02 min 05 s", "1 d 01 h 01 min"]);
  assert.deepEqual([48.2, 2700, 9000, 400000].map(span), ["48.2 s", "45.0 min", "2.5 h", "4.6 d"]);
  assert.deepEqual([0, 0.25, 9000, 20000, 2.5e6].map(short), ["0", "0.25", "9000", "20k", "2.5M"]);
  assert.deepEqual([0.03, 0.105, 1, 0].map(rate), ["$0.03/h", "$0.105/h", "$1/h", "$0/h"]);
  assert.deepEqual([0.1234, 12.345, 6917.1, 56917.1].map(money), ["$0.1234", "$12.35", "$6917.10", "$56,917.10"]);
  assert.deepEqual([0.0123, -0.03, 0].map((x) => percent(x)), ["+1.23 %", "-3.00 %", "0.00 %"]);
  assert.deepEqual([512, 2 ** 34, 10e6].map(bytes), ["512 B", "16.0 GiB", "9.5 MiB"]);
  assert.deepEqual([1234567, 9999, 10000, -12345].map(count), ["1,234,567", "9999", "10,000", "-12,345"]);
  assert.deepEqual([[0.3, 0.5], [7, 10], [400, 600], [100000, 172800]].map(([rough, step]) => timeStep(rough) - step), [0, 0, 0, 0]);
  assert.deepEqual([[0.5, 0.1], [90, 30], [3600, 1200], [7200, 3600]].map(([t, step]) => timeLabel(t, step)), ["0.5 s", "90 s", "60 min", "2 h"]);
});

test("an act of the provider is its own, whatever its reason", () => {
  const by = (by) => isOfUser({ by });
  assert.deepEqual(["provider", "provider: above the bid", "provider: fewer can be had", "provider: room for vm9"].map(by),
    [false, false, false, false]);
  assert.deepEqual(["user: why not", "user"].map(by), [true, true]);
});

test("a run that is over has a verdict, and one that is not loaded no charges that it could lack", () => {
  const [over, going] = [whole(), whole([RUN.slice(0, -1)])];
  assert.equal(verdictWords(going, null), "no verdict before the end");
  assert.equal(verdictWords(over, { verdict: { faithful: true, notes: [] } }), "faithful");
  assert.equal(verdictWords(over, { verdict: { faithful: false, notes: [] } }), "NOT faithful");
  assert.match(verdictWords(over, { verdict: null }), /report/);
  assert.equal(missingWords(new History(), "Nothing has been charged yet."), "The run is not loaded yet.");
  assert.equal(missingWords(going, "Nothing has been charged yet."), "Nothing has been charged yet.");
  assert.equal(missingWords(going, ""), "");
});

test("what is not done when the run is over failed, as in its summary", () => {
  const going = [["submit", 0, 1, 1, 1, "a"], ["sample", 1, 2, 1, 3, 0, 1, 0, 0.1, 1]];
  const history = whole([going]);
  const { failed, givenUp, waiting, running } = outcomesAt(history, 5, "task");
  assert.deepEqual([failed, givenUp, waiting, running], [1, 0, 2, 1]);
  history.apply([["over", 9, false, "cancelled"]]);
  assert.deepEqual(outcomesAt(history, 9, "task"), { done: 3, waiting: 0, running: 0, failed: 4, terminated: 0, givenUp: 3 });
  assert.equal(outcomesAt(history, 5, "task").failed, 1, "it was not over then");
  assert.equal(outcomesAt(history, 9, "request").failed, 1, "a request that is open has not failed");
  assert.equal(outcomesAt(new History(), 9, "task"), null);
});

test("of many migrations those of the whole window are drawn, and all of the task that is selected", () => {
  const history = new History();
  const moves = 4 * MOST_LINKS;
  history.apply([["vm", 0, 0, "a", "spot", 1, 1, 0, null, null], ["vm", 0, 1, "a", "spot", 1, 1, 0, null, null]]);
  for (let n = 0; n <= moves; n += 1) {
    // The task 7 moves once in a thousand times, and the task 1 else.
    const task = n % 1001 === 3 ? 7 : 1;
    history.apply([["start", n, task, n, n % 2, [0], "fg", "", n ? 0.5 : null, "burst"], ["stop", n + 0.5, task, n, "stopped"]]);
  }
  const ends = (list) => list.map((n) => history.linkEnds.at(n));
  const sample = linksIn(history, { from: 0, until: moves }, null);
  assert.equal(sample.all, history.links.length);
  const drawn = ends(sample.found);
  assert.ok(drawn.length <= MOST_LINKS + 1, `${drawn.length} are drawn`);
  assert.ok(drawn.at(-1) > 0.99 * moves && drawn[0] < 0.01 * moves, `from ${drawn[0]} to ${drawn.at(-1)}`);
  const chosen = history.task(7).index;
  const ofSeven = linksIn(history, { from: 0, until: moves }, chosen).found.filter((n) => history.spans.task[history.links[n][1]] === chosen);
  const all = history.links.filter(([, after]) => history.spans.task[after] === chosen);
  assert.equal(ofSeven.length, all.length);
  assert.ok(all.length >= 5);
  assert.deepEqual(ends(linksIn(history, { from: 10, until: 20 }, null).found).filter((t) => t < 10), []);
});

// A provider: host 1 has four vCPUs. The spot VM 0 makes room for the VM 2, and hibernates.
const TYPES = { small: { vcpus: 1, burstable: false }, t: { vcpus: 1, burstable: true }, large: { vcpus: 2, burstable: false } };
const PROVIDER = [
  ["host", 0, 1, "w1", 4, null],
  ["host", 0, 2, "w2", 4, null],
  ["vm", 10, 0, "large", "spot", 2, 1, 0.03, null, null, 0],
  ["vm-state", 20, 0, "running"],
  ["vm", 30, 1, "t", "on-demand", 1, 1, 0.1, null, null, 1],
  ["vm-state", 40, 1, "running"],
  ["act", 50, "hibernate", "vm0", [0], "provider: room for vm2"],
  ["vm-state", 50, 0, "hibernating"],
  ["vm", 50, 2, "large", "on-demand", 2, 1, 0.1, null, null, 5],
  ["vm-state", 60, 0, "hibernated"],
  ["vm-state", 60, 2, "running"],
  ["vm-end", 80, 2, "terminated"],
  ["vm-state", 90, 0, "running"],
  ["vm-end", 100, 0, "terminated"],
  ["vm-end", 100, 1, "terminated"],
  ["over", 100, true, null],
];

function provider() {
  const history = new History();
  history.describe({ types: TYPES, task_noun: "request" });
  history.apply(PROVIDER);
  return history;
}

test("customers' VMs lie on the vCPUs of their host, and give them back while they are hibernated", () => {
  const history = provider();
  const strip = history.strips.get(1);
  assert.equal(strip.lanes.length, 4, "no more than the host has");
  const vms = (time) => strip.lanes.map((_, lane) => strip.vmAt(lane, time)?.id ?? null);
  assert.deepEqual(vms(15), [null, null, null, null], "it boots");
  assert.deepEqual(vms(45), [0, 0, 1, null]);
  assert.deepEqual(vms(70), [2, 2, 1, null], "the VM that came has its room");
  assert.deepEqual(vms(95), [0, 0, 1, null], "it has resumed");
  assert.deepEqual(vms(101), [null, null, null, null]);
  const more = new History();
  more.describe({ types: TYPES, task_noun: "request" });
  for (let n = 0; n < 3; n += 1) more.apply([["vm", n, n, "large", "spot", 2, 7, 0, null, null, n], ["vm-state", n, n, "running"]]);
  assert.equal(more.strips.get(7).lanes.length, 6, "a host without limit has as many as are used");
});

test("of VMs too many to be seen the vCPUs that they use are drawn, by market, as means of each column", () => {
  const strip = provider().strips.get(1);
  const means = (edge) => vcpusUsed(strip, [0, 40, 80, 120], edge).map((market) => [...market]);
  assert.deepEqual(means(Infinity), [[0, 1, 0], [1, 1, 0.5], [0, 1, 0.5]], "on demand, spot and burstable");
  assert.deepEqual(means(50)[1], [1, 0.5, 0], "nothing is used after the clock");
  const isDense = (width, until) => isCrowded({ gutter: 0, size: { width }, state: { view: { from: 0, until } } }, strip);
  assert.deepEqual([isDense(10, 100), isDense(100, 100), isDense(10, 10)], [true, false, false]);
});

test("hosts are used by market: at a time, over time, and on average at the end of the run", () => {
  const history = provider();
  assert.deepEqual(["large", "t"].map((type) => marketOf(type, "on-demand", TYPES).key), ["ondemand", "burstable"]);
  assert.equal(marketOf("t", "spot", TYPES).key, "spot");
  const at = (head) => {
    const usage = usageShown({ history, head }).byHost.get(1);
    return [usage.ondemand, usage.spot, usage.burstable, usage.vms];
  };
  assert.deepEqual(at(45), [0, 2, 1, 2]);
  assert.deepEqual(at(70), [2, 0, 1, 3]);
  const whole = wholeUsage({ history, head: 70 });
  assert.deepEqual([whole.all.vcpus, whole.capacity, whole.hosts, whole.full, whole.idle, whole.isMean], [3, 8, 2, 0, 1, false]);
  const mean = wholeUsage({ history, head: 100 });
  assert.ok(mean.isMean);
  // 2 vCPUs for 40 + 10 s on spot, 2 for 20 s on demand, 1 for 60 s burstable, of 100 s.
  assert.deepEqual([mean.all.spot, mean.all.ondemand, mean.all.burstable].map((n) => n.toFixed(6)), ["1.000000", "0.400000", "0.600000"]);
  const { usage } = history;
  const steps = Array.from({ length: usage.times.length }, (_, n) => [usage.times.at(n), usage.spot.at(n), usage.ondemand.at(n), usage.burstable.at(n)]);
  assert.deepEqual(steps, [[20, 2, 0, 0], [40, 2, 0, 1], [60, 0, 2, 1], [80, 0, 0, 1], [90, 2, 0, 1], [100, 0, 0, 0]]);
});

test("a request is found by its number, and leads to its VM", () => {
  const history = provider();
  assert.deepEqual(["request 5", "5", "vm 1", "host 1", "W2", "request 9"].map((typed) => nameOf(history, typed)),
    ["vm2", "vm2", "vm1", "host1", "host2", ""]);
});

test("a scale of time has its times in order, and back", () => {
  for (const scale of SCALES) {
    const view = new View();
    Object.assign(view, { mode: "free", from: 100, span: 1000, scale });
    assert.deepEqual([100, 1100].map((time) => view.part(time).toFixed(9)), ["0.000000000", "1.000000000"]);
    let before = -Infinity;
    for (let time = 0; time <= 1200; time += 50) {
      assert.ok(view.part(time) > before, `${scale}: ${time} is not after the time before`);
      before = view.part(time);
      assert.ok(Math.abs(view.timeAt(before) - time) < 1e-6, `${scale}: ${time}`);
    }
    const ticks = view.ticks(800, 90);
    assert.ok(ticks.length >= 4, `${scale}: ${ticks.length} ticks`);
    const places = ticks.map(({ time }) => view.part(time) * 800).sort((a, b) => a - b);
    assert.ok(places.slice(1).every((x, n) => x - places[n] > 60), `${scale}: labels touch: ${places}`);
    assert.equal(new Set(ticks.map(({ label }) => label)).size, ticks.length);
  }
  const view = new View();
  Object.assign(view, { mode: "free", from: 0, span: 1000, scale: "log" });
  assert.ok(view.part(10) > 0.3, "the beginning has room");
  view.scale = "log-back";
  assert.ok(view.part(990) < 0.7, "the end has room");
  view.zoom(0.5, 0, 1000);
  assert.equal(view.until, 1000, "the fine end stays");
});

test("what is looked for comes into the window with room around it", () => {
  const view = new View();
  view.showAll(100000);
  view.show(500, 520, 100000);
  assert.ok(view.from < 500 && view.until > 520 && view.span < 100, `${view.from} to ${view.until}`);
  view.show(0, 3, 100000);
  assert.equal(view.from, 0);
});
