// What one may do to a run from here: interrupt VMs as the provider would, and cancel. Each is asked
// for twice, with a reason, which the log keeps.

import { byId, el, setText, toast } from "./dom.js";
import { clock, count } from "./words.js";

const EFFECTS = {
  hibernate: "freezes at once and keeps its memory; what runs there stands still until it resumes",
  resume: "goes on from where it was frozen, if its host has room",
  preempt: "has its notice and is taken away for good",
  rebalance: "has a recommendation that it be replaced, which its scheduler hears; it stays",
};

async function post(address, body) {
  let answer;
  try {
    answer = await fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  } catch {
    throw new Error("the coordinator can't be reached");
  }
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok || said.error) throw new Error(said.error ?? `the coordinator answers ${answer.status}`);
  return said;
}

/** A dialog with a form: `send` is called when it is confirmed, and its error is shown there. */
function ask(dialog, send) {
  const form = dialog.querySelector("form");
  const error = dialog.querySelector(".error");
  const confirm = dialog.querySelector("[data-confirm]");
  const refuse = (text) => {
    setText(error, text);
    error.hidden = !text;
  };
  dialog.addEventListener("close", () => refuse(""));
  dialog.querySelector("[data-dismiss]").addEventListener("click", () => dialog.close());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    confirm.disabled = true;
    refuse("");
    try {
      await send(new FormData(form));
      dialog.close();
      form.querySelector("[name=why]").value = "";
    } catch (failed) {
      refuse(failed.message);
    } finally {
      confirm.disabled = false;
    }
  });
}

export class Actions {
  constructor() {
    this.interruptDialog = byId("interrupt");
    this.cancelDialog = byId("cancel");
    this.state = null;
    ask(this.interruptDialog, (form) => this.interrupt(form));
    ask(this.cancelDialog, (form) => this.cancel(form));
    byId("open-interrupt").addEventListener("click", () => this.open("hibernate", null));
    byId("open-cancel").addEventListener("click", () => this.cancelDialog.showModal());
    this.interruptDialog.addEventListener("input", () => this.preview());
  }

  /** Shows what may be done in this run, or why nothing may. */
  show(state) {
    this.state = state;
    const { run, history, connected } = state;
    const isOver = history.over !== null;
    const may = Boolean(run?.may?.act) && !isOver && connected;
    const why = isOver ? "the run is over" : run?.may?.why_not ?? (connected ? "" : "there is no connection");
    for (const id of ["open-interrupt", "open-cancel"]) {
      const button = byId(id);
      if (button.disabled === may) button.disabled = !may;
      const title = may ? "" : `Not possible: ${why}`;
      if (button.title !== title) button.title = title;
    }
  }

  /** Opens the dialog for an action, on a VM or on what the reader says then. */
  open(action, target) {
    const { history, head, run } = this.state;
    const form = this.interruptDialog.querySelector("form");
    const there = history.vms.filter((vm) => vm.from <= head && head < vm.until);
    const vms = form.querySelector("[name=vm]");
    vms.replaceChildren(...there.map((vm) => el("option", { value: vm.id }, `VM ${vm.id}: ${vm.type}, ${vm.market}`)));
    const names = [...new Set([...there.map((vm) => vm.type), ...Object.keys(run?.types ?? {})])].sort();
    form.querySelector("[name=type]").replaceChildren(...names.map((type) => el("option", { value: type }, type)));
    const zones = [...new Set(names.filter((type) => type.includes("@")).map((type) => type.split("@")[1]))];
    form.querySelector("[name=zone]").replaceChildren(...zones.map((zone) => el("option", { value: zone }, zone)));
    form.querySelector("[data-target=zone]").hidden = !zones.length;
    form.querySelector(`[name=action][value=${action}]`).checked = true;
    const kind = target || there.length ? "vm" : "all";
    form.querySelector(`[name=target][value=${kind}]`).checked = true;
    if (target) vms.value = String(target.vm);
    this.preview();
    this.interruptDialog.showModal();
    form.querySelector("[name=why]").focus();
  }

  target(form) {
    const kind = form.get("target");
    if (kind === "all") return "all";
    return { [kind]: kind === "vm" ? Number(form.get("vm")) : form.get(kind) };
  }

  preview() {
    const form = new FormData(this.interruptDialog.querySelector("form"));
    const target = this.target(form);
    const what = target === "all" ? "Every spot VM" : target.vm !== undefined ? `VM ${target.vm}` : `Each spot VM of ${target.type ? "type" : "zone"} ${target.type ?? target.zone}`;
    setText(byId("interrupt-effect"), `${what} ${EFFECTS[form.get("action")]}. The log keeps it with your reason, and a replay of the run does the same.`);
  }

  async interrupt(form) {
    const action = form.get("action");
    const said = await post("/api/interrupt", { action, target: this.target(form), why: form.get("why").trim() });
    const vms = said.vms ?? [];
    const names = vms.length ? (vms.length > 8 ? `${count(vms.length)} VMs` : vms.map((id) => `VM ${id}`).join(", ")) : "no VM";
    toast(`${action} at ${clock(said.at_s)}: ${names}`, !vms.length);
  }

  async cancel(form) {
    await post("/api/cancel", { why: form.get("why").trim() });
    toast("The run is being cancelled: its VMs end, and what was done is kept.");
  }
}
