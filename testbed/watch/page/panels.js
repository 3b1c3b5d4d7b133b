// Panels that show the run at the playhead: the figures that matter, VMs, the queue, hosts and fidelity.

import { byId, el, facts, setAttribute, setText } from "./dom.js";
import { VirtualList } from "./list.js";
import { taskName } from "./hit.js";
import { fidelityAt, figuresAt, outcomesAt, runningOn, seatsTaken, verdictWords, vmState, vmsAt, waitedFor, waitingAt } from "./moment.js";
import { MARKETS, marketName, marketWords, usesHost, vmsByMarket } from "./market.js";
import { Usage, usageShown, wholeUsage } from "./usage.js";
import { amount, bytes, clock, costWord, count, counted, fixed, hostMemory, hostVcpus, money, percent, rate, span } from "./words.js";

/** Tells whether a panel would show something else than the last time: these values are others. */
class Shown {
  isSame(...values) {
    const isSame = values.every((value, n) => Object.is(value, this.values?.[n]));
    this.values = values;
    return isSame;
  }
}

/** The figures that matter most. */
export class Cards {
  constructor(box) {
    this.cards = ["done", "failed", "terminated", "queue", "vms", "hosts", "cost", "time", "fidelity"].map((name) => {
      const [title, value, remark] = [el("span"), el("b"), el("small")];
      const card = el("div", { class: "card", id: `card-${name}` }, title, value, remark);
      box.append(card);
      return { name, card, title, value, remark };
    });
  }

  show(state) {
    const figures = figuresAt(state.history, state.head);
    const outcomes = outcomesAt(state.history, state.head, state.noun);
    const shown = { done: done(state, outcomes), failed: failed(state, outcomes), terminated: terminated(outcomes), queue: queue(state, outcomes), vms: vms(state), cost: cost(state, figures) };
    Object.assign(shown, { time: time(state, figures), hosts: hosts(state), fidelity: fidelity(state) });
    for (const { name, card, title, value, remark } of this.cards) {
      if (card.hidden === Boolean(shown[name])) card.hidden = !card.hidden;
      if (!shown[name]) continue;
      const [words, figure, about, tone] = shown[name];
      setText(title, words);
      setText(value, figure);
      setText(remark, about);
      setAttribute(card, "class", `card ${tone ?? ""}`.trim());
    }
  }
}

function done({ run, noun }, outcomes) {
  const total = run?.tasks ? ` of ${count(run.tasks)}` : "";
  if (!outcomes) return [`${noun}s done`, "–", "nothing is counted yet"];
  const { done, running } = outcomes;
  return [`${noun}s done`, `${count(done)}${total}`, `${count(running)} running`];
}

/** How many failed, of those that were submitted; null if none did. A request failed if it got no VM, as in reports. */
function failed({ noun }, outcomes) {
  if (!outcomes?.failed) return null;
  const { done, failed: bad, terminated: early, running, waiting, givenUp } = outcomes;
  const given = givenUp ? `, ${givenUp === bad ? "" : `${count(givenUp)} `}given up` : "";
  const share = percent(bad / (done + bad + early + running + waiting), 1).replace("+", "");
  const about = noun === "request" ? `got no VM: ${share} of those so far` : `${share} of those so far${given}`;
  return [`${noun}s failed`, count(bad), about, "bad"];
}

/** How many requests lost their VM before its time; null if none did. */
function terminated(outcomes) {
  if (!outcomes?.terminated) return null;
  return ["VMs terminated", count(outcomes.terminated), "ended by the provider before their time", "bad"];
}

function queue({ noun }, outcomes) {
  const about = noun === "request" ? "until other VMs have left" : "not started, or to resume";
  return ["waiting", outcomes ? count(outcomes.waiting) : "–", outcomes ? about : ""];
}

/** The VMs that are there, from their launch until their end, as in all tables; and those of them that do not run. */
function vms({ history, head }) {
  if (!history.changes) return ["VMs", "–", ""];
  const there = vmsAt(history, head);
  const byMarket = vmsByMarket(there);
  const resting = new Map();
  for (const vm of there) {
    const state = vmState(vm, head);
    if (!usesHost(state)) resting.set(state, (resting.get(state) ?? 0) + 1);
  }
  const about = [marketWords(byMarket, count, history), ...[...resting].map(([state, n]) => `${count(n)} ${RESTING_WORDS[state] ?? state}`)];
  return ["VMs", count(there.length), there.length ? about.join(", ") : history.vms.length ? `all ${count(history.vms.length)} have ended` : "none launched yet"];
}

function cost({ run, history }, figures) {
  const word = costWord(run);
  if (!figures) return [word, "–", history.changes ? "nothing is charged yet" : "not loaded yet"];
  const about = [];
  let tone = "";
  if (typeof run?.budget_usd === "number") {
    about.push(`of a budget of ${money(run.budget_usd)}`);
    tone = figures.cost > run.budget_usd ? "bad" : "";
  } else if (typeof run?.plan?.cost_usd === "number") about.push(`planned ${money(run.plan.cost_usd)}`);
  about.push(`now ${rate(figures.rate)}`);
  return [word, money(figures.cost), about.join(", "), tone];
}

function time({ run, history, head }, figures) {
  const { over } = history;
  const planned = typeof run?.plan?.makespan_s === "number" ? `planned ${span(run.plan.makespan_s)}` : "";
  const deadline = run?.deadline_s;
  if (!deadline) return ["time", span(head), planned || "no deadline"];
  const left = deadline - head;
  const isOver = over && head >= over.time - 1e-6;
  const tone = isOver ? (over.time <= deadline && over.complete && !figures?.failed ? "good" : "bad") : left < 0 ? "bad" : "";
  const words = left >= 0 ? `${span(left)} to the deadline` : `${span(-left)} past the deadline`;
  return ["time", span(head), [words, planned].filter(Boolean).join(", "), tone];
}

/** How full the hosts are, where customers' VMs fill them; null elsewhere. */
function hosts(state) {
  const whole = state.history.strips.size ? wholeUsage(state) : null;
  if (!whole) return null;
  const { all, capacity, hosts: n, isMean } = whole;
  const about = `${amount(all.vcpus)} of ${count(capacity)} on ${counted(n, "host")}`;
  return [`vCPUs in use${isMean ? ", mean of the run" : ""}`, percent(all.vcpus / capacity, 0).replace("+", ""), about];
}

/** How exactly tasks are emulated; null in virtual time, where nothing is measured. */
function fidelity({ run, history, head, news }) {
  if (!run || run.mode === "virtual") return null;
  const now = fidelityAt(history, head);
  const said = verdictWords(history, news);
  if (!now) return [history.over ? "fidelity" : "fidelity so far", "not measured", history.over ? `no attempt ended; ${said}` : "no attempt has ended yet"];
  const about = `worst ${percent(now.worst)} of ${counted(now.ended, "attempt")}; ${said}`;
  return [history.over ? "fidelity" : "fidelity so far", `mean ${percent(now.mean)}`, about, news?.verdict?.faithful === false ? "bad" : ""];
}

/** A button that selects something. */
export function selector(text, about, select) {
  return el("button", { class: "pick", type: "button", click: () => select(about) }, text);
}

/** What the card of VMs says of those that do not run. */
const RESTING_WORDS = { boot: "booting" };

const STATE_WORDS = { boot: "boots", notice: "has its notice", ended: "ended" };

/** The table of VMs, which says in words what the Gantt chart draws. */
export class VmTable {
  constructor(box, { select }) {
    this.select = select;
    this.list = new VirtualList(box, {
      make: () => this.make(),
      fill: (row, vm) => this.fill(row, vm),
      empty: "No VM is there at this time.",
    });
    this.caption = byId("vms-count");
    this.box = box;
    this.shown = new Shown();
  }

  make() {
    const cell = (name) => el("span", { class: name, role: "cell" });
    const name = cell("c-vm");
    const button = el("button", { class: "pick", type: "button", click: () => this.select(button.dataset.about) });
    name.append(button);
    const state = cell("c-state");
    state.append(el("span", { class: "pill" }));
    return el("div", { role: "row" }, name, cell("c-type"), cell("c-market"), state, cell("c-seats"), cell("c-work"),
      cell("c-credits"), cell("c-price"), cell("c-host"));
  }

  fill(row, vm) {
    const { state } = this;
    const { history, head, selected } = state;
    const now = vmState(vm, head) ?? "not yet";
    const [name, type, market, stateCell, seats, work, credits, price, host] = row.children;
    const about = `vm${vm.id}`;
    setText(name.firstChild, `VM ${vm.id}`);
    name.firstChild.dataset.about = about;
    setAttribute(row, "data-vm", vm.id);
    setAttribute(row, "data-state", now);
    setAttribute(row, "aria-selected", selected === about ? "true" : null);
    setText(type, vm.type);
    setText(market, history.isProvider ? marketName(vm.sale, history) : vm.market);
    setText(stateCell.firstChild, STATE_WORDS[now] ?? now);
    setAttribute(stateCell.firstChild, "class", `pill s-${now.replace(" ", "-")}`);
    setText(seats, vm.isCustomers ? counted(vm.vcpus, "vCPU") : `${seatsTaken(history, vm, head)} of ${counted(vm.vcpus, "vCPU")}`);
    const running = runningOn(history, vm, head).map((span) => history.tasks[history.spans.task[span]].number);
    setText(work, running.length ? `${state.noun} ${running.slice(0, 12).join(", ")}${running.length > 12 ? " …" : ""}` : vm.request !== null ? `request ${vm.request}` : "idle");
    const balance = vm.credits?.at(head);
    setText(credits, balance === undefined ? "" : `${fixed(balance, 1)} credits`);
    setText(price, `${rate(vm.usd)}${typeof vm.bid === "number" ? `, bid ${rate(vm.bid)}` : ""}`);
    setText(host, history.hosts.get(vm.host)?.name ?? "");
  }

  show(state) {
    this.state = state;
    const { history, head, choice, selected } = state;
    if (this.shown.isSame(history, history.changes, head, choice.ended, selected)) return;
    const there = choice.ended ? history.vms.filter((vm) => vm.from <= head) : vmsAt(history, head);
    this.list.set(there);
    setAttribute(this.box, "aria-rowcount", there.length + 1);
    setText(this.caption, `${count(there.length)}${choice.ended ? " so far" : ""}`);
  }
}

/** The tasks that wait. */
export class Queue {
  constructor(box, { select }) {
    this.caption = byId("queue-count");
    this.shown = new Shown();
    this.list = new VirtualList(box, {
      make: () => {
        const button = el("button", { class: "pick", type: "button", click: () => select(button.dataset.about) });
        return el("div", { role: "row" }, el("span", { class: "c-task", role: "cell" }, button),
          el("span", { class: "c-since", role: "cell" }), el("span", { class: "c-size", role: "cell" }));
      },
      fill: (row, task) => this.fill(row, task),
      empty: "Nothing waits at this time.",
    });
  }

  fill(row, task) {
    const { head, noun, selected } = this.state;
    const [name, since, size] = row.children;
    setText(name.firstChild, taskName(task, noun));
    name.firstChild.dataset.about = `task${task.id}`;
    setAttribute(row, "data-task", task.id);
    setAttribute(row, "aria-selected", selected === `task${task.id}` ? "true" : null);
    setText(since, `for ${span(waitedFor(task, head))}`);
    setText(size, task.processes > 1 ? `${count(task.processes)} processes` : "");
  }

  show(state) {
    this.state = state;
    if (this.shown.isSame(state.history, state.history.changes, state.head, state.selected)) return;
    const waiting = waitingAt(state.history, state.head);
    this.list.set(waiting);
    setText(this.caption, count(waiting.length));
  }
}

/** What VMs of each market use of the hosts at the playhead, where customers' VMs are. */
export class MarketTable {
  constructor(body) {
    this.body = body;
    this.panel = byId("markets");
    this.queue = byId("waiting");
    this.shown = new Shown();
    for (const { colour, name } of [...MARKETS, { name: "all" }]) {
      const swatch = colour === undefined ? null : el("i", { class: `sw sw-market sw-k${colour}`, "aria-hidden": "true" });
      body.append(el("tr", {}, el("th", { scope: "row" }, swatch, ` ${name}`), el("td", { class: "n" }), el("td", { class: "n" }), el("td", { class: "n" })));
    }
  }

  show({ history, head }) {
    const isShown = history.strips.size > 0;
    if (this.panel.hidden === isShown) this.panel.hidden = !isShown;
    // Requests do not wait in a list: they get their VM, wait for its room, or are refused.
    if (this.queue.hidden !== history.isProvider) this.queue.hidden = history.isProvider;
    if (!isShown || this.shown.isSame(history, history.changes, head)) return;
    const capacity = wholeUsage({ history, head })?.capacity ?? 0;
    const { byHost, isMean } = usageShown({ history, head });
    const all = new Usage();
    for (const usage of byHost.values()) all.add(usage);
    const vms = vmsByMarket(isMean ? history.vms : vmsAt(history, head));
    setText(byId("markets-when"), isMean ? "VMs in all; vCPUs on average over the run" : "at the playhead");
    const rows = MARKETS.map(({ key }) => [vms[key], all[key]]);
    rows.push([vms.ondemand + vms.spot + vms.burstable, all.vcpus]);
    rows.forEach(([n, vcpus], row) => {
      const [name, number, taken, share] = this.body.rows[row].cells;
      if (row < MARKETS.length) setText(name.lastChild, ` ${marketName(MARKETS[row], history)}`);
      this.body.rows[row].hidden = !n && row < MARKETS.length && MARKETS[row].key === "burstable";
      setText(number, count(n));
      setText(taken, amount(vcpus));
      setText(share, capacity ? percent(vcpus / capacity, 1).replace("+", "") : "");
    });
  }
}

/** The hosts, what they hold at the playhead, and their sessions now. */
export class Hosts {
  constructor(body, { select }) {
    this.body = body;
    this.select = select;
    this.shown = new Shown();
  }

  show({ history, head, news, isLive, run }) {
    // Sessions are told with each news; a run that is over has none.
    const sessionsOf = news?.sessions?.length ? news : null;
    if (this.shown.isSame(history, history.changes, head, isLive, sessionsOf, run?.mode, news?.over)) return;
    const sessions = new Map((news?.sessions ?? []).map((session) => [session.host, session]));
    const held = new Map();
    for (const vm of history.vms) {
      if (vm.from <= head && head < vm.until) held.set(vm.host, (held.get(vm.host) ?? 0) + 1);
    }
    const hosts = [...history.hosts.values()].filter((host) => host.from <= head);
    // A provider may have thousands of hosts: the page says how many more there are.
    const shown = hosts.slice(0, 200);
    while (this.body.rows.length > shown.length) this.body.deleteRow(-1);
    while (this.body.rows.length < shown.length) {
      const button = el("button", { class: "pick", type: "button", click: () => this.select(button.dataset.about) });
      this.body.append(el("tr", {}, el("td", {}, button), el("td", { class: "n" }), el("td", { class: "n" }), el("td", { class: "n" }), el("td")));
    }
    shown.forEach((host, n) => {
      const [name, vcpus, memory, vms, session] = this.body.rows[n].cells;
      setText(name.firstChild, host.name);
      name.firstChild.dataset.about = `host${host.id}`;
      setText(vcpus, hostVcpus(host));
      setText(memory, hostMemory(host));
      setText(vms, counted(held.get(host.id) ?? 0, "VM"));
      setText(session, sessionWords(host, sessions, { head, isLive, run, news }));
    });
    setText(byId("hosts-more"), hosts.length > shown.length ? `and ${count(hosts.length - shown.length)} more` : "");
    byId("hosts-empty").hidden = hosts.length > 0;
  }
}

function sessionWords(host, sessions, { head, isLive, run, news }) {
  if (host.until <= head) return `lost at ${clock(host.until)}${host.why ? `: ${host.why}` : ""}`;
  if (run?.mode === "virtual") return "none in virtual time";
  if (news?.over) return "ended with the run";
  if (!isLive) return "told of now only";
  if (!sessions.size) return "told by the coordinator's own page only";
  const session = sessions.get(host.id);
  if (!session) return "no session";
  const silent = session.silent_s >= 1 ? `, silent for ${span(session.silent_s)}` : "";
  const since = typeof session.connected_s === "number" ? ` for ${span(session.connected_s)}` : "";
  return `${session.worker} connected${since}${silent}`;
}

/** What is measured of how true a live run is, and what is not known yet. */
export class Fidelity {
  constructor(box) {
    this.box = box;
    this.shown = "";
  }

  show({ history, run, news, head }) {
    const now = fidelityAt(history, head);
    const rows = [];
    this.box.parentElement.classList.toggle("off-paper", run?.mode === "virtual");
    let verdict = "Whether the run is faithful is said at its end, from all of its evidence; this is what there is so far.";
    if (run?.mode === "virtual") {
      verdict = "A run in virtual time has nothing to measure: its tasks take what their VMs promise.";
    } else {
      if (history.over) {
        const notes = news?.verdict?.notes ?? [];
        verdict = `The run is over: ${[verdictWords(history, news), ...notes].join("; ")}.`;
      }
      rows.push(["time taken against time promised", now
        ? `mean ${percent(now.mean)}, worst ${percent(now.worst)}, of ${counted(now.ended, "attempt")} that ended`
        : "missing: no attempt has ended yet"]);
      rows.push(["share received against share promised, now", typeof news?.share_error === "number" ? percent(news.share_error) : "missing: not measured yet"]);
      const journal = news?.journal_ms;
      rows.push(["journal, until a line is durable", journal
        ? `last ${fixed(journal.last, 1)} ms, worst ${fixed(journal.worst, 1)} ms` : "missing: the coordinator's own page alone has it"]);
    }
    const key = JSON.stringify([verdict, rows]);
    if (key === this.shown) return;
    this.shown = key;
    this.box.replaceChildren(el("p", {}, verdict), facts(rows));
  }
}
