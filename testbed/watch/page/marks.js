// Marks on the rows of the Gantt chart: checkpoints, acts, VMs taken away, and migrations between rows.

import { lowerBound } from "./columns.js";
import { BACKGROUND, isOfUser } from "./history.js";
import { AXIS } from "./rows.js";
import { linksIn } from "./moment.js";

const MANY_LINKS = 40;

export function drawMarks(gantt, entry, y) {
  const { ink, theme, rows } = gantt;
  const { view, history } = gantt.state;
  const { vm } = entry;
  const times = vm.checkpointTimes;
  const size = Math.max(2.5, Math.min(5, rows.lane * 0.4));
  let lastX = -10;
  for (let n = lowerBound(times.values, times.length, view.from); n < times.length; n += 1) {
    const time = times.at(n);
    if (time > view.until) break;
    const x = gantt.x(time, view);
    const place = seatOf(gantt, vm, vm.checkpoints[n].task, time);
    // Marks that would cover each other are one.
    if (x - lastX < 1.5 && place === null) continue;
    lastX = x;
    const middle = y + (place ?? 0) + rows.lane / 2;
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
    flag(gantt, gantt.x(act.time, view), y - 2, isOfUser(act));
  }
  const isTaken = vm.why === "preempted" || vm.why === "host-lost" || vm.why === "failed";
  if (isTaken && vm.until >= view.from && vm.until <= view.until) {
    ink.fillStyle = theme.limit;
    ink.fillRect(gantt.x(vm.until, view) - 1, y - 2, 2.4, entry.height + 4);
  }
}

/** Height of a task's first lane on a VM at a time, or null. */
function seatOf(gantt, vm, taskIndex, time) {
  const { history } = gantt.state;
  const { spans } = history;
  const list = history.tasks[taskIndex].spans;
  for (let n = list.length - 1; n >= 0; n -= 1) {
    const span = list[n];
    if (spans.vm[span] !== vm.index || spans.from.at(span) > time) continue;
    return spans.lanes[span][0] * gantt.rows.lane;
  }
  return null;
}

/** A flag: what the provider did, or somebody who looked on. */
function flag({ ink, theme }, x, y, isUser) {
  ink.beginPath();
  ink.moveTo(x, y);
  ink.lineTo(x + 8, y + 3.5);
  ink.lineTo(x, y + 7);
  ink.closePath();
  ink.fillStyle = isUser ? theme.accent : theme["warn-line"];
  ink.fill();
  ink.fillRect(x - 0.6, y, 1.2, 14);
}

/** Draws the migrations of the window, or a sample of them; how many of how many there are: {shown, all}. */
export function drawLinks(gantt, top) {
  const { ink, theme } = gantt;
  const { history, view, selectedTask } = gantt.state;
  const { spans } = history;
  const middle = (span) => {
    const entry = gantt.rows.of.get(spans.vm[span]);
    if (!entry) return null;
    const [below, height] = gantt.rows.part(spans.lanes[span][0] ?? 0, spans.tier[span] === BACKGROUND, history.hasBackground);
    return entry.top - top + below + height / 2;
  };
  const found = [];
  const sample = linksIn(history, view, selectedTask?.index ?? null);
  for (const n of sample.found) {
    const [before, after] = history.links[n];
    const [a, b] = [spans.until.at(before), spans.from.at(after)];
    if (a > view.until) continue;
    const [ya, yb] = [middle(before), middle(after)];
    if (ya === null || yb === null) continue;
    if (Math.max(ya, yb) < AXIS || Math.min(ya, yb) > gantt.size.height) continue;
    found.push([gantt.x(a, view), ya, gantt.x(b, view), yb, spans.task[after]]);
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
  return { shown: sample.found.length, all: sample.all };
}
