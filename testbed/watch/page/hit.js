// What is under the pointer in the Gantt chart, and the words that say it.

import { lowerBound } from "./columns.js";
import { AXIS } from "./rows.js";
import { MARKETS, marketName, marketWords } from "./market.js";
import { spanOnLane, vmState } from "./moment.js";
import { isCrowded, vcpusUsed } from "./strip.js";
import { amount, bytes, clock, counted, hostMemory, hostVcpus, rate, span as length } from "./words.js";

const NEAR_PX = 5;

/** What is at a point of the chart: {time, isAxis, host, vm, span, checkpoint, act}, each if there is one. */
export function hit(gantt, state, x, y) {
  const { view, history, edge } = state;
  const found = { time: gantt.timeAt(x, view), isAxis: y < AXIS };
  if (found.isAxis) return found;
  const entry = gantt.rows.at(y + gantt.size.top);
  if (!entry) return found;
  if (entry.kind === "host") return { ...found, host: entry.host };
  if (entry.kind === "strip" && isCrowded(gantt, entry.strip)) {
    if (x < gantt.gutter || found.time > edge) return found;
    const times = [found.time, gantt.timeAt(x + NEAR_PX, view)];
    const used = vcpusUsed(entry.strip, times, edge);
    return { ...found, used: Object.fromEntries(MARKETS.map(({ key }, n) => [key, used[n][0]])) };
  }
  if (entry.kind === "strip") {
    const lane = Math.floor((y + gantt.size.top - entry.top) / gantt.rows.lane);
    const vm = x < gantt.gutter || found.time > edge ? null : entry.strip.vmAt(lane, found.time);
    return vm ? { ...found, vm, act: actNear(gantt, view, vm, found.time) } : found;
  }
  found.vm = entry.vm;
  if (x < gantt.gutter) return { ...found, isName: true };
  const near = nearby(gantt, view, found.time);
  found.act = actNear(gantt, view, entry.vm, found.time);
  const within = y + gantt.size.top - entry.top;
  const lane = Math.floor(within / gantt.rows.lane);
  const inLane = within - lane * gantt.rows.lane;
  const isBelow = history.hasBackground && inLane > gantt.rows.lane * 0.61;
  const lanes = isBelow ? entry.vm.background : entry.vm.foreground;
  const span = found.time > edge ? -1 : spanOnLane(history, lanes[lane], found.time);
  if (span >= 0) found.span = span;
  const times = entry.vm.checkpointTimes;
  for (let n = lowerBound(times.values, times.length, found.time - near); n < times.length; n += 1) {
    if (times.at(n) > found.time + near) break;
    const checkpoint = entry.vm.checkpoints[n];
    if (span < 0 || history.spans.task[span] === checkpoint.task) found.checkpoint = { ...checkpoint, time: times.at(n) };
  }
  return found;
}

/** How many seconds a few pixels are at a time. */
function nearby(gantt, view, time) {
  return gantt.timeAt(gantt.x(time, view) + NEAR_PX, view) - time;
}

function actNear(gantt, view, vm, time) {
  const near = nearby(gantt, view, time);
  return vm.acts.find((act) => Math.abs(act.time - time - near) < near * 1.4);
}

export function taskName(task, noun) {
  return task.name && task.name !== String(task.number) ? `${noun} ${task.number} (${task.name})` : `${noun} ${task.number}`;
}

/** What became of an attempt, in a few words. */
export function howEnded(how) {
  return {
    done: "done", verified: "done and verified", reported: "reported done by its worker", "program-failed": "its program failed",
    failed: "failed", stopped: "stopped, its work kept", dropped: "stopped, its work lost",
    "vm-gone": "ended with its VM", moved: "moved elsewhere",
  }[how] ?? "runs";
}

/** Lines about what is under the pointer. */
export function words(found, state) {
  const { history, noun } = state;
  const lines = [];
  if (found.host) {
    lines.push(found.host.name, `${hostVcpus(found.host)}, memory ${hostMemory(found.host)}`);
    if (found.host.why) lines.push(`lost at ${clock(found.host.until)}: ${found.host.why}`);
  }
  if (found.used) lines.push(`vCPUs in use: ${marketWords(found.used, amount, history)}`, "zoom in to see each VM");
  if (found.span !== undefined) lines.push(...aboutSpan(history, found.span, noun));
  if (found.checkpoint) {
    const { task, size, held, part, time } = found.checkpoint;
    lines.push(`checkpoint of ${taskName(history.tasks[task], noun)} at ${clock(time)}: ${bytes(size)}, held it for ${length(held)}`);
    if (typeof part === "number") lines.push(`it holds ${(part * 100).toFixed(0)} % of the work`);
  }
  if (found.act) lines.push(`${found.act.action} at ${clock(found.act.time)}, by ${found.act.by}`);
  if (found.vm) {
    const { vm } = found;
    const about = found.span === undefined ? vmState(vm, found.time) : null;
    const request = vm.request === null ? "" : ` of request ${vm.request}`;
    lines.push(`VM ${vm.id}${request}: ${vm.type}, ${history.isProvider ? marketName(vm.sale, history) : vm.market}, ${counted(vm.vcpus, "vCPU")}${about && !found.isName ? `, ${about}` : ""}`);
    if (found.isName) lines.push(`${rate(vm.usd)}${typeof vm.bid === "number" ? `, bid ${rate(vm.bid)}` : ""}`);
    if (vm.why && found.time >= vm.until) lines.push(`ended at ${clock(vm.until)}: ${vm.why}`);
  }
  if (!lines.length && !found.isAxis) return "";
  if (found.time >= 0 && !found.isName) lines.push(`at ${clock(found.time)}`);
  return lines.join("\n");
}

function aboutSpan(history, span, noun) {
  const { spans } = history;
  const task = history.tasks[spans.task[span]];
  const until = spans.until.at(span);
  const lanes = spans.lanes[span];
  const lines = [`${taskName(task, noun)}, attempt ${spans.attempt[span]}`];
  const ended = until === Infinity ? "runs since" : `${howEnded(spans.how[span])}:`;
  const times = until === Infinity ? clock(spans.from.at(span)) : `${clock(spans.from.at(span))} to ${clock(until)}`;
  lines.push(`${ended} ${times}${spans.tier[span] ? ", in the background" : ""}${lanes.length > 1 ? `, on ${lanes.length} vCPUs` : ""}`);
  if (spans.part[span] !== null) lines.push(`began with ${(spans.part[span] * 100).toFixed(0)} % of its work done`);
  if (spans.reason[span]) lines.push(spans.reason[span]);
  return lines;
}
