// What is selected: a VM, a task or a host, its facts at the playhead, what may be done with it, and
// the coordinator's explanation: why a task waits, or what became of it.

import { byId, el, facts, setText } from "./dom.js";
import { find } from "./find.js";
import { howEnded, taskName } from "./hit.js";
import { DONE, RUNNING, WAITING } from "./history.js";
import { marketName, marketWords } from "./market.js";
import { isFrozen, runningOn, spanAt, taskState, vmState, waitedFor } from "./moment.js";
import { Usage, usageShown } from "./usage.js";
import { amount, clock, counted, date, fixed, hostMemory, hostVcpus, rate, span } from "./words.js";

const MOST_ATTEMPTS = 40;
const EXPLAIN_EVERY_MS = 3000;

const STATES = { [WAITING]: "waits", [RUNNING]: "runs", [DONE]: "is done" };

export class Selection {
  constructor({ select, act }) {
    Object.assign(this, { select, act, shown: "", about: "", explainedFor: "", explainedAt: 0 });
    this.title = byId("selection-title");
    this.box = byId("selection-facts");
    this.words = byId("selection-words");
    this.close = byId("selection-close");
    this.close.addEventListener("click", () => select(""));
  }

  show(state, real) {
    const { selected, history } = state;
    const thing = find(history, selected);
    this.close.hidden = !selected;
    const made = thing ? this.make(thing, state) : { title: "Nothing is selected", key: `none${selected}`, build: () => this.hint(selected) };
    if (made.key !== this.shown) {
      this.shown = made.key;
      setText(this.title, made.title);
      // What had the focus gets it back: the facts are built anew.
      const focused = this.box.contains(document.activeElement) ? document.activeElement.dataset.key : null;
      this.box.replaceChildren(...made.build());
      if (focused) this.box.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
    }
    this.explain(state, thing, real);
  }

  hint(selected) {
    const words = selected
      ? `The run has no ${selected}, or not yet.`
      : "Select a VM, a task or a host: in the chart, in the lists, or by its name in the field above the chart.";
    return [el("p", { class: "dim" }, words)];
  }

  make(thing, state) {
    if (thing.vm) return this.vm(thing.vm, state);
    if (thing.task) return this.task(thing.task, state);
    return this.host(thing.host, state);
  }

  pick(text, about) {
    return el("button", { class: "pick", type: "button", "data-key": about, click: () => this.select(about) }, text);
  }

  vm(vm, state) {
    const { history, head, run, noun } = state;
    const now = vmState(vm, head);
    const running = runningOn(history, vm, head);
    const balance = vm.credits?.at(head);
    const host = history.hosts.get(vm.host);
    const acts = vm.acts.filter((act) => act.time <= head).slice(-6);
    const may = run?.may?.act && now !== "ended" && now !== null;
    const key = ["vm", vm.id, now, vm.until <= head, running.join(), balance, acts.length, may].join("|");
    const build = () => {
      const list = facts([
        ["state", now === "ended" ? `ended: ${vm.why}` : now ?? "not launched yet"],
        ["request", vm.request === null ? "" : String(vm.request)],
        ["type", `${vm.type}, ${history.isProvider ? marketName(vm.sale, history) : vm.market}`],
        ["vCPUs", String(vm.vcpus)],
        ["price", `${rate(vm.usd)}${typeof vm.bid === "number" ? `, bid ${rate(vm.bid)}` : ""}`],
        ["credits", balance === undefined ? "" : `${fixed(balance, 1)} vCPU-minutes`],
        ["launched", `${clock(vm.from)} ${date(vm.from, run?.calendar_unix_s)}`.trim()],
        ["ended", vm.until <= head ? clock(vm.until) : ""],
        ["tenant", vm.tenant === null || vm.tenant === undefined ? "" : String(vm.tenant)],
        ["host", host ? this.pick(host.name, `host${host.id}`) : ""],
        ["interruptions", acts.map((act) => `${act.action} at ${clock(act.time)}, by ${act.by}`).join("; ")],
      ]);
      const tasks = el("p", { class: "picks" }, running.length ? "runs now: " : vm.isCustomers ? "what its customer runs is not known" : "runs nothing now");
      for (const span of running.slice(0, 30)) {
        const task = history.tasks[history.spans.task[span]];
        tasks.append(this.pick(taskName(task, noun), `task${task.id}`), " ");
      }
      if (running.length > 30) tasks.append(`and ${running.length - 30} more`);
      return [list, tasks, this.buttons(vm, now, may, run)];
    };
    return { title: `VM ${vm.id}`, key, build };
  }

  buttons(vm, now, may, run) {
    const button = (action, words, isAble) => el("button", {
      type: "button", "data-key": action, "data-action": action, disabled: !may || !isAble,
      click: () => this.act(action, { vm: vm.id }),
    }, words);
    const row = el("p", { class: "buttons" },
      button("hibernate", "Hibernate…", !isFrozen(now)), button("resume", "Resume…", now === "hibernated" || now === "hibernating"),
      button("preempt", "Preempt…", true), button("rebalance", "Recommend to replace…", !isFrozen(now)));
    if (!run?.may?.act && run?.may?.why_not) row.append(el("small", { class: "dim" }, `not possible: ${run.may.why_not}`));
    return row;
  }

  task(task, state) {
    const { history, head, run, noun } = state;
    const now = taskState(task, head);
    const running = spanAt(history, task, head);
    const attempts = task.spans.filter((n) => history.spans.from.at(n) <= head);
    const isOpen = (n) => history.spans.until.at(n) > head;
    const waited = now === WAITING ? span(waitedFor(task, head)) : "";
    const key = ["task", task.id, now, attempts.length, attempts.filter(isOpen).length, waited].join("|");
    const build = () => {
      const list = facts([
        ["state", now === 0 ? "not submitted yet" : STATES[now] + (waited ? `, for ${waited}` : "")],
        ["submitted", `${clock(task.submitted)} ${date(task.submitted, run?.calendar_unix_s)}`.trim()],
        ["processes", task.processes > 1 ? String(task.processes) : ""],
        ["runs on", running >= 0 ? this.pick(`VM ${history.vms[history.spans.vm[running]].id}`, `vm${history.vms[history.spans.vm[running]].id}`) : ""],
      ]);
      const items = attempts.slice(-MOST_ATTEMPTS).map((n) => this.attempt(n, state));
      const left = attempts.length - items.length;
      const table = el("ol", { class: "attempts", start: left + 1 }, ...items);
      return [list, el("h3", { class: "sub" }, attempts.length ? counted(attempts.length, "attempt") : "no attempt yet"), table];
    };
    return { title: taskName(task, noun).replace(/^./, (c) => c.toUpperCase()), key, build };
  }

  attempt(n, { history, head }) {
    const { spans } = history;
    const vm = history.vms[spans.vm[n]];
    const until = spans.until.at(n);
    const times = until > head ? `since ${clock(spans.from.at(n))}` : `${clock(spans.from.at(n))} to ${clock(until)}, ${howEnded(spans.how[n])}`;
    const extra = [spans.tier[n] ? "background" : "", spans.part[n] === null ? "" : `from ${(spans.part[n] * 100).toFixed(0)} %`, spans.reason[n]];
    return el("li", {}, this.pick(`VM ${vm.id}`, `vm${vm.id}`), ` ${[times, ...extra].filter(Boolean).join("; ")}`);
  }

  host(host, state) {
    const { history, head } = state;
    const vms = history.vms.filter((vm) => vm.host === host.id && vm.from <= head && head < vm.until);
    const key = ["host", host.id, vms.length, vms[0]?.id, vms.at(-1)?.id, host.until <= head].join("|");
    const build = () => {
      const usage = usageShown(state).byHost.get(host.id) ?? new Usage();
      const list = facts([
        [usageShown(state).isMean ? "in use, mean" : "in use", host.vcpus === null ? "" : `${amount(usage.vcpus)} of ${hostVcpus(host)}`],
        ["by market", usage.vcpus ? marketWords(usage, amount, history) : ""],
        ["vCPUs", host.vcpus === null ? hostVcpus(host) : ""], ["memory", hostMemory(host)], ["joined", clock(host.from)],
        ["lost", host.until <= head ? `${clock(host.until)}: ${host.why}` : ""],
      ]);
      const picks = el("p", { class: "picks" }, vms.length ? "holds " : "holds no VM");
      for (const vm of vms.slice(0, 60)) picks.append(this.pick(`VM ${vm.id}`, `vm${vm.id}`), " ");
      if (vms.length > 60) picks.append(`and ${vms.length - 60} more`);
      return [list, picks];
    };
    return { title: host.name, key, build };
  }

  /** Asks why, whenever the thing changes, and every few seconds while a task waits. */
  async explain({ selected, history, connected, isLive }, thing, real) {
    if (!thing || !connected) {
      if (!thing) this.say("", "");
      return;
    }
    const version = thing.task ? thing.task.times.length : thing.vm ? thing.vm.states.length + Number(thing.vm.until < Infinity) : 0;
    const isWaiting = thing.task && thing.task.states[thing.task.states.length - 1] === WAITING;
    const wanted = `${selected}|${version}`;
    const isDue = isWaiting && history.over === null && real - this.explainedAt > EXPLAIN_EVERY_MS;
    if (wanted === this.explainedFor && !isDue) return;
    this.explainedFor = wanted;
    this.explainedAt = real;
    if (selected !== this.about) this.say(selected, "asking…");
    try {
      const answer = await fetch(`/api/explain?about=${encodeURIComponent(selected)}`);
      const said = await answer.json();
      if (this.explainedFor !== wanted) return;
      const when = isLive ? "" : "As of the last event, not of the playhead:\n";
      this.say(selected, answer.ok ? when + said.text : `no explanation: ${said.error ?? answer.status}`);
    } catch {
      if (this.explainedFor === wanted) {
        this.say(selected, "the explanation can't be had now");
        this.explainedFor = "";
      }
    }
  }

  say(about, text) {
    this.about = about;
    setText(this.words, text);
    this.words.dataset.about = text ? about : "";
    this.words.parentElement.hidden = !text;
    if (!about) this.explainedFor = "";
  }
}
