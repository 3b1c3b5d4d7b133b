// The charts beside the Gantt chart: queue, VMs, cost, prices and bids, credits, fidelity. Each says
// its values at the playhead in words as well, which is what a screen reader has of it.

import { el, setText, showTip } from "./dom.js";
import { Plot } from "./plot.js";
import { colours } from "./theme.js";
import { MARKETS, marketName } from "./market.js";
import { figuresAt, fidelityAt, missingWords, vmsAt } from "./moment.js";
import { boundedHosts } from "./usage.js";
import { upperBound } from "./columns.js";
import { clock, costWord, count, fixed, money, percent, rate, short } from "./words.js";

const MOST_LINES = 7;

function columns(times, values) {
  return { times: times.values, values: values.values, length: times.length };
}

function sampled(state, names, kinds) {
  const { samples } = state.history;
  const { work } = colours();
  const now = figuresAt(state.history, state.head);
  const lines = names.map(([key, name, colour]) => ({
    name, kind: "step", colour: work[colour], ...columns(samples.times, samples[key]),
    now: now ? count(now[key]) : "",
  }));
  return { lines, label: short, missing: samples.times.length ? "" : kinds };
}

function queue(state) {
  return sampled(state, [["waiting", "waiting", 1], ["running", "running", 0]], `No ${state.noun} has been counted yet.`);
}

function machines(state) {
  return sampled(state, MARKETS.slice(0, 2).reverse().map((market) => [market.key, marketName(market, state.history), market.colour]), "No VM has been counted yet.");
}

/** The vCPUs that the VMs of each market use, beside those that the hosts have. */
function usage(state) {
  const { history, head } = state;
  const theme = colours();
  const { usage: columnsOf } = history;
  const n = upperBound(columnsOf.times.values, columnsOf.times.length, head) - 1;
  const lines = MARKETS.filter(({ key }) => key !== "burstable" || history.markets.has(key)).map((market) => ({
    name: marketName(market, history), kind: "step", colour: theme.work[market.colour], ...columns(columnsOf.times, columnsOf[market.key]),
    now: n < 0 ? "" : count(columnsOf[market.key].at(n)),
  }));
  const capacity = boundedHosts(history, head).reduce((sum, host) => sum + (head < host.until ? host.vcpus : 0), 0);
  const levels = capacity ? [{ value: capacity, colour: theme.dim, label: `all of the hosts’ ${count(capacity)}` }] : [];
  return { lines, levels, label: short, missing: columnsOf.times.length ? "" : "No VM has been launched yet." };
}


function cost(state) {
  const { history, run, head, edge } = state;
  const theme = colours();
  const now = figuresAt(history, head);
  const end = figuresAt(history, edge);
  const line = {
    name: costWord(run), kind: "rise", colour: theme.work[0], ...columns(history.samples.times, history.samples.cost),
    ending: end?.cost, until: history.over?.time, now: now ? money(now.cost) : "",
  };
  const levels = [];
  if (typeof run?.plan?.cost_usd === "number") {
    levels.push({ value: run.plan.cost_usd, colour: theme.dim, label: `plan ${money(run.plan.cost_usd)}` });
  }
  if (typeof run?.budget_usd === "number") {
    levels.push({ value: run.budget_usd, colour: theme.limit, label: `budget ${money(run.budget_usd)}` });
  }
  return { lines: [line], levels, label: (v) => `$${short(v)}`, missing: now || end ? "" : "Nothing has been charged yet." };
}

/** What a quantity by name holds at the playhead; without changes, what the catalogue says. */
function prices(state) {
  const { history, run, head, edge } = state;
  const theme = colours();
  const used = [...new Set(history.vms.filter((vm) => vm.market === "spot").map((vm) => vm.type))];
  const names = [...new Set([...history.prices.keys(), ...used])].slice(0, MOST_LINES);
  const lines = [];
  for (const [n, type] of names.entries()) {
    const series = history.prices.get(type);
    const flat = run?.types?.[type]?.spot_usd_h;
    if (!series && typeof flat !== "number") continue;
    const made = series
      ? { ...columns(series.times, series.values), now: rate(series.at(head) ?? series.values.at(0)) }
      : { times: [0], values: [flat], length: 1, now: rate(flat) };
    lines.push({ name: type, kind: "step", colour: theme.work[n], until: Math.max(edge, state.view.until), ...made });
  }
  const levels = [];
  const bids = new Map();
  for (const vm of vmsAt(history, head)) {
    if (typeof vm.bid === "number") bids.set(`${vm.type} ${vm.bid}`, vm);
  }
  for (const vm of [...bids.values()].slice(0, MOST_LINES)) {
    const n = names.indexOf(vm.type);
    levels.push({ value: vm.bid, colour: n < 0 ? theme.dim : theme.work[n], label: `bid ${rate(vm.bid)}` });
  }
  return { lines, levels, label: (v) => `$${short(v)}`, missing: lines.length ? "" : "No spot price has been told: no spot VM, or a market without prices." };
}

/** How many spot VMs of a type there can be, where that is scarce. */
function available(state) {
  const { history, head } = state;
  const { work } = colours();
  const lines = [...history.available].slice(0, MOST_LINES).map(([type, series], n) => ({
    name: type, kind: "step", colour: work[n], ...columns(series.times, series.values), now: count(series.at(head) ?? 0),
  }));
  const more = history.available.size - lines.length;
  return { lines, label: short, missing: "", note: more > 0 ? `and ${count(more)} types more` : "" };
}

function credits(state) {
  const { history, head, selected } = state;
  const theme = colours();
  const all = history.vms.filter((vm) => vm.credits);
  const there = all.filter((vm) => vm.from <= head && head < vm.until);
  const wanted = (there.length ? there : all).sort((a, b) => (selected === `vm${b.id}`) - (selected === `vm${a.id}`));
  const lines = wanted.slice(0, MOST_LINES).map((vm, n) => ({
    name: `VM ${vm.id}`, kind: "rise", colour: theme.work[n], ...columns(vm.credits.times, vm.credits.values),
    until: vm.until, now: fixed(vm.credits.at(head) ?? 0, 1),
  }));
  const more = wanted.length - lines.length;
  return {
    lines, label: short, missing: lines.length ? "" : "No burstable VM has told its credits.",
    note: more > 0 ? `and ${count(more)} more: select a VM to see its own` : "",
  };
}

function fidelity(state) {
  const { history, head } = state;
  const theme = colours();
  const f = history.fidelity;
  const now = fidelityAt(history, head);
  const line = { name: "error of each attempt that ended", kind: "dots", colour: theme.work[6], ...columns(f.times, f.errors), now: "" };
  const missing = f.times.length ? "" : "No attempt has ended yet: nothing is measured.";
  return {
    lines: [line], isSigned: true, levels: [{ value: 0, colour: theme.axis, label: "" }], missing,
    label: (v) => `${short(v * 100)} %`,
    note: now ? `mean ${percent(now.mean)}, worst ${percent(now.worst)} of ${count(now.ended)} attempts` : "",
  };
}

/** Name, title (or what says it of a run), unit, data, and whether a run has such a thing at all: a chart of it is left out else. */
const CHARTS = [
  ["queue", "Queue", (state) => `${state.noun}s`, queue],
  ["machines", "VMs that run", () => "VMs", machines],
  ["cost", ({ run }) => (costWord(run) === "revenue" ? "Revenue" : "Cost against plan and budget"), () => "US dollars", cost],
  ["usage", "vCPUs in use, by market", () => "vCPUs", usage, ({ history }) => history.strips.size > 0],
  ["prices", ({ run }) => (costWord(run) === "revenue" ? "Prices of preemptible VMs" : "Spot prices and bids"), () => "US dollars an hour", prices, hasSpotPrices],
  ["available", "Spot VMs to be had", () => "VMs", available, ({ history }) => history.available.size > 0],
  ["credits", "CPU credits", () => "vCPU-minutes at full speed", credits, ({ history }) => history.hasCredits],
  ["fidelity", "Fidelity so far", () => "time taken beyond the time promised, %", fidelity, ({ run }) => run?.mode !== "virtual"],
];

/** Whether spot VMs have a price: a type that can be had on spot, and a VM or a price of it. */
function hasSpotPrices({ history }) {
  return history.prices.size > 0 || history.markets.has("spot");
}

export class Charts {
  constructor(box, { onTime }) {
    this.charts = CHARTS.map(([id, title, unit, data, isThere]) => {
      const canvas = el("canvas", { role: "img" });
      const legend = el("p", { class: "legend" });
      const missing = el("p", { class: "empty", hidden: true });
      const units = el("span", { class: "unit" });
      const heading = el("h3", {}, typeof title === "string" ? title : title({}));
      const figure = el("figure", { class: "chart", id: `chart-${id}`, hidden: isThere !== undefined },
        el("figcaption", {}, heading, " ", units), legend, el("div", { class: "plot" }, canvas, missing));
      box.append(figure);
      const plot = new Plot(canvas);
      canvas.addEventListener("click", (event) => plot.view && onTime(plot.timeAt(event.offsetX)));
      canvas.addEventListener("pointermove", (event) => plot.view && showTip(this.tip(plot, event), event));
      canvas.addEventListener("pointerleave", () => showTip("", null));
      return { id, title, heading, unit, data, isThere, figure, canvas, legend, missing, units, plot };
    });
  }

  tip(plot, event) {
    const time = plot.timeAt(event.offsetX);
    return time >= 0 ? clock(time) : "";
  }

  get isStale() {
    return this.charts.some((chart) => chart.plot.isStale);
  }

  /** Takes the size of each chart on paper, or with null those of their boxes on the screen. */
  print(size) {
    for (const { plot } of this.charts) plot.print(size);
  }

  draw(state) {
    for (const chart of this.charts) {
      if (!chart.plot.isSeen) continue;
      chart.plot.isStale = false;
      const drawn = this.announced(chart, state);
      if (!drawn.missing) chart.plot.draw(drawn, state);
    }
  }

  /** A chart's data; where there is none, why, is said in its place, whether the chart is in sight or not. */
  announced(chart, state) {
    const drawn = chart.data(state);
    const missing = missingWords(state.history, drawn.missing);
    if (chart.missing.hidden === Boolean(missing)) chart.missing.hidden = !missing;
    if (chart.canvas.hidden !== Boolean(missing)) chart.canvas.hidden = Boolean(missing);
    setText(chart.missing, missing);
    return { ...drawn, missing };
  }

  /** Says the values at the playhead in words; less often than it draws. */
  say(state) {
    for (const chart of this.charts) {
      if (chart.isThere && chart.figure.hidden === chart.isThere(state)) chart.figure.hidden = !chart.figure.hidden;
      const drawn = this.announced(chart, state);
      if (!chart.plot.isSeen) continue;
      setText(chart.units, chart.unit(state));
      if (typeof chart.title === "function") setText(chart.heading, chart.title(state));
      const entries = drawn.missing ? [] : drawn.lines.filter((line) => line.now !== "");
      while (chart.legend.children.length > entries.length + 1) chart.legend.lastElementChild.remove();
      while (chart.legend.children.length < entries.length + 1) {
        chart.legend.append(el("span", { class: "entry" }, el("i", { "aria-hidden": "true" }), el("span")));
      }
      entries.forEach((line, n) => {
        const [swatch, text] = chart.legend.children[n].children;
        chart.legend.children[n].hidden = false;
        if (swatch.dataset.colour !== line.colour) {
          swatch.dataset.colour = line.colour;
          swatch.style.background = line.colour;
        }
        swatch.hidden = false;
        setText(text, `${line.name} ${line.now}`);
      });
      const note = chart.legend.children[entries.length];
      note.children[0].hidden = true;
      note.hidden = !drawn.note || Boolean(drawn.missing);
      setText(note.children[1], drawn.note ?? "");
      const words = drawn.missing || `${entries.map((line) => `${line.name} ${line.now}`).join(", ")} ${drawn.note ?? ""}`;
      const label = `${chart.heading.textContent}, in ${chart.unit(state)}, at ${clock(state.head)}: ${words.trim()}`;
      if (chart.canvas.ariaLabel !== label) chart.canvas.ariaLabel = label;
    }
  }
}
