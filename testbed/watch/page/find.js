// Names of things: as the page selects them, and as people type them.

/** The thing that a name such as vm3, task5 or host1 names. */
export function find(history, name) {
  const match = /^(vm|task|host)(\d+)$/.exec(name);
  if (!match) return null;
  const id = Number(match[2]);
  const found = { vm: () => history.vm(id), task: () => history.task(id), host: () => history.hosts.get(id) }[match[1]]();
  return found ? { [match[1]]: found } : null;
}

/** A name as people type it ("VM 3", "task 5", "job 12") as one that is selected, or "". */
export function nameOf(history, typed) {
  const match = /^\s*(vm|task|job|request|host)?\s*#?(\d+)\s*$/i.exec(typed);
  if (match) {
    const kind = (match[1] ?? "task").toLowerCase();
    const number = Number(match[2]);
    if (kind === "vm" || kind === "host") return `${kind}${number}`;
    // People know a task by its number in its bag or log.
    const task = history.tasks.find((t) => t.number === number);
    if (task) return `task${task.id}`;
    const vm = kind === "job" ? undefined : history.vmOfRequest.get(number);
    return vm === undefined ? "" : `vm${vm}`;
  }
  const wanted = typed.trim().toLowerCase();
  if (!wanted) return "";
  const task = history.tasks.find((t) => t.name?.toLowerCase() === wanted);
  if (task) return `task${task.id}`;
  const host = [...history.hosts.values()].find((h) => h.name.toLowerCase() === wanted);
  return host ? `host${host.id}` : "";
}
