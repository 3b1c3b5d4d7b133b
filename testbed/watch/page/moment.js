// What was so at one time of a run: the answers that the panels show, wherever the playhead is.

import { lowerBound, upperBound } from "./columns.js";
import { BACKGROUND, FOREGROUND, RUNNING, WAITING } from "./history.js";

/** The state of a VM at a time: "boot", "running" and so on, "ended" after its end, null before its launch. */
export function vmState(vm, time) {
  if (time < vm.from) return null;
  if (time >= vm.until) return "ended";
  return vm.states[upperBound(vm.stateTimes, vm.stateTimes.length, time) - 1] ?? "boot";
}

/** The most migrations that are drawn at once. */
export const MOST_LINKS = 1500;

/**
 * The migrations of a window, by their places in the history, and how many there are: {found, all}. Where they are more
 * than can be drawn they are spread evenly over the window, and those of the task at `chosen` are all there.
 */
export function linksIn(history, view, chosen) {
  const { values, length } = history.linkEnds;
  const first = lowerBound(values, length, view.from);
  const last = upperBound(values, length, view.until + history.longestLink);
  const step = Math.ceil((last - first) / MOST_LINKS);
  const found = [];
  for (let n = first; n < last; n += 1) {
    const isOfChosen = chosen !== null && history.spans.task[history.links[n][1]] === chosen;
    if (isOfChosen || (n - first) % step === 0) found.push(n);
  }
  return { found, all: last - first };
}

export function isFrozen(state) {
  return state === "hibernated" || state === "hibernating" || state === "resuming";
}

/** The VMs that are there at a time. */
export function vmsAt(history, time) {
  return history.vms.filter((vm) => vm.from <= time && time < vm.until);
}

/** The state of a task at a time; 0 before its submission. */
export function taskState(task, time) {
  const last = task.times.length - 1;
  // Most questions are about now.
  if (time >= task.times[last]) return task.states[last];
  const index = upperBound(task.times, task.times.length, time) - 1;
  return index < 0 ? 0 : task.states[index];
}

/** The attempt that a task is in at a time; -1 if it does not run. */
export function spanAt(history, task, time) {
  for (let n = task.spans.length - 1; n >= 0; n -= 1) {
    const span = task.spans[n];
    if (history.spans.from.at(span) <= time) return time < history.spans.until.at(span) ? span : -1;
  }
  return -1;
}

/** The tasks that wait at a time, in the order of their submission. */
export function waitingAt(history, time) {
  const found = [];
  // All tasks of a large run, four times a second while it plays.
  for (const task of history.tasks) {
    if (task.submitted <= time && taskState(task, time) === WAITING) found.push(task);
  }
  return found;
}

/** How long a task has waited at a time since it last ran, or since its submission. */
export function waitedFor(task, time) {
  const index = upperBound(task.times, task.times.length, time) - 1;
  return index < 0 ? 0 : time - task.times[index];
}

/** The spans on a lane of a VM at a time: its index in the lane's spans, or -1. */
export function spanOnLane(history, spans, time) {
  if (!spans) return -1;
  const { from, until } = history.spans;
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (from.values[spans[middle]] <= time) low = middle + 1;
    else high = middle;
  }
  const span = spans[low - 1];
  return span !== undefined && time < until.values[span] ? span : -1;
}

/** The attempts that run on a VM at a time, each once, foreground first. */
export function runningOn(history, vm, time) {
  const found = new Set();
  for (const lanes of [vm.foreground, vm.background]) {
    for (const lane of lanes) {
      const span = spanOnLane(history, lane, time);
      if (span >= 0) found.add(span);
    }
  }
  return [...found];
}

/** How many seats of a tier are taken on a VM at a time. */
export function seatsTaken(history, vm, time, tier = FOREGROUND) {
  const lanes = tier === BACKGROUND ? vm.background : vm.foreground;
  let taken = 0;
  for (const lane of lanes) if (spanOnLane(history, lane, time) >= 0) taken += 1;
  return taken;
}

/** Counts and cost at a time, as the last sample has them; cost grows at its rate until the next. */
export function figuresAt(history, time) {
  const { samples } = history;
  const index = upperBound(samples.times.values, samples.times.length, time) - 1;
  if (index < 0) return null;
  const at = (name) => samples[name].at(index);
  const until = history.over ? Math.min(time, history.over.time) : time;
  const passed = Math.max(0, until - at("times"));
  const cost = at("cost") + (at("rate") * passed) / 3600;
  return {
    waiting: at("waiting"), running: at("running"), done: at("done"),
    spot: at("spot"), ondemand: at("ondemand"), cost, rate: at("rate"), failed: at("failed"), terminated: at("terminated"),
  };
}

/**
 * What became of units of work by a time, or null: `failed` has the meaning that it has in summary.json. At the end of the run
 * what is not done failed, and was given up.
 */
export function outcomesAt(history, time, noun) {
  const figures = figuresAt(history, time);
  if (!figures) return null;
  const isOver = history.over && time >= history.over.time - 1e-6;
  const givenUp = isOver && noun !== "request" ? figures.waiting + figures.running : 0;
  const [waiting, running] = givenUp ? [0, 0] : [figures.waiting, figures.running];
  return { done: figures.done, waiting, running, failed: figures.failed + givenUp, terminated: figures.terminated, givenUp };
}

/** Mean and worst error of the attempts that had ended by a time; null if there are none. */
export function fidelityAt(history, time) {
  const f = history.fidelity;
  const ended = upperBound(f.times.values, f.times.length, time);
  if (!ended) return null;
  return { ended, mean: f.sums.at(ended - 1) / ended, worst: f.worst.at(ended - 1) };
}

/** The acts up to a time, the last first; at most `limit`. */
export function actsUntil(history, time, limit) {
  const acts = [];
  for (let n = history.acts.length - 1; n >= 0 && acts.length < limit; n -= 1) {
    if (history.acts[n].time <= time) acts.push(history.acts[n]);
  }
  return acts;
}

export function isRunning(task, time) {
  return taskState(task, time) === RUNNING;
}

/** Whether a live run was faithful, which is known once it is over. */
export function verdictWords(history, news) {
  if (!history.over) return "no verdict before the end";
  if (!news?.verdict) return "the verdict is in its report.html";
  return news.verdict.faithful ? "faithful" : "NOT faithful";
}

/** Why there is nothing to draw, in words; of a run that is yet to be loaded nothing is known. */
export function missingWords(history, words) {
  return words && !history.changes ? "The run is not loaded yet." : words;
}
