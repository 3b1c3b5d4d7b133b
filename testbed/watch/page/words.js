// Numbers and times as people read them, each with its unit.

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;

/** A number with this many decimals; never "-0". */
export function fixed(value, digits) {
  const text = value.toFixed(digits);
  return /^-0(\.0*)?$/.test(text) ? text.slice(1) : text;
}

/** The digits of a whole number with a comma after each thousand, from 10,000 on, as in reports. */
function grouped(digits) {
  return digits.replace("-", "").length < 5 ? digits : digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A whole number: "1746", "12,345". */
export function count(value) {
  return grouped(Math.round(value).toString());
}

/** A number of vCPUs: whole, or a mean with one decimal. */
export function amount(value) {
  return Number.isInteger(value) || value >= 100 ? count(value) : fixed(value, 1);
}

/** A count with its noun: "1 VM", "3 VMs". */
export function counted(value, noun) {
  return `${count(value)} ${noun}${Math.round(value) === 1 ? "" : "s"}`;
}

/** A short number for an axis: three digits, thousands as k, millions as M. */
export function short(value) {
  const size = Math.abs(value);
  const [scaled, unit] = size >= 1e6 ? [value / 1e6, "M"] : size >= 1e4 ? [value / 1e3, "k"] : [value, ""];
  if (scaled === 0) return "0";
  const digits = Math.min(9, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(scaled)))));
  const text = fixed(scaled, digits);
  return (digits > 0 ? text.replace(/\.?0+$/, "") : text) + unit;
}

/** A span of time in its largest fitting unit: "48.2 s", "31.4 min", "2.3 h", "4.5 d". */
export function span(seconds) {
  const size = Math.abs(seconds);
  if (size < 2 * MINUTE) return `${fixed(seconds, 1)} s`;
  if (size < 2 * HOUR) return `${fixed(seconds / MINUTE, 1)} min`;
  if (size < 2 * DAY) return `${fixed(seconds / HOUR, 1)} h`;
  return `${fixed(seconds / DAY, 1)} d`;
}

/** A time of the run to the second: "45 s", "12 min 05 s", "3 h 02 min 10 s", "2 d 03 h 15 min". */
export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds + 1e-6));
  const [d, h] = [Math.floor(whole / DAY), Math.floor((whole % DAY) / HOUR)];
  const [m, s] = [Math.floor((whole % HOUR) / MINUTE), whole % MINUTE];
  const two = (value) => String(value).padStart(2, "0");
  if (d) return `${d} d ${two(h)} h ${two(m)} min`;
  if (h) return `${h} h ${two(m)} min ${two(s)} s`;
  return m ? `${m} min ${two(s)} s` : `${s} s`;
}

/** The date of a time of the run, if its clock has one; in UTC. */
export function date(seconds, calendar) {
  if (calendar === null || calendar === undefined) return "";
  return new Date((calendar + seconds) * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC";
}

/** Dollars: four decimals below a dollar, where a run's cost often is. */
export function money(dollars) {
  const [whole, part] = fixed(dollars, Math.abs(dollars) < 1 ? 4 : 2).split(".");
  return `$${grouped(whole)}.${part}`;
}

/** A price an hour. */
export function rate(dollars) {
  return `$${dollars === 0 ? "0" : dollars.toPrecision(3).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "")}/h`;
}

/** A share as per cent, with a sign. */
export function percent(share, digits = 2) {
  const text = fixed(share * 100, digits);
  return `${share > 0 && Number(text) !== 0 ? "+" : ""}${text} %`;
}

/** Bytes in binary units: "10.0 MiB". */
export function bytes(size) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [size, 0];
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : fixed(value, 1)} ${units[unit]}`;
}

/** The vCPUs of a host: "33 vCPUs". */
export function hostVcpus(host) {
  return host.vcpus === null ? "vCPUs without limit" : counted(host.vcpus, "vCPU");
}

/** The memory of a host; a virtual one may have any. */
export function hostMemory(host) {
  return host.memory === null ? "without limit" : bytes(host.memory);
}

/** What the VMs of a run come to: who asks for work pays it, a provider with customers alone takes it in. */
export function costWord(run) {
  return run?.task_noun === "request" ? "revenue" : "cost";
}

const STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000];

/** A round number not below `rough`: 1, 2 or 5 times a power of ten. */
export function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = rough / power;
  return power * (factor <= 1.000001 ? 1 : factor <= 2.000001 ? 2 : factor <= 5.000001 ? 5 : 10);
}

/** A round step of an axis of time, in seconds. */
export function timeStep(rough) {
  if (rough < 1) return niceStep(rough);
  return STEPS.find((step) => step >= rough) ?? niceStep(rough / DAY) * DAY;
}

/** The label of a tick where ticks are `step` seconds apart. */
export function timeLabel(seconds, step) {
  const [unit, name] =
    step < MINUTE ? [1, "s"] : step < HOUR ? [MINUTE, "min"] : step < DAY ? [HOUR, "h"] : [DAY, "d"];
  const digits = step < 1 ? Math.ceil(-Math.log10(step)) : 0;
  return `${fixed(seconds / unit, digits)} ${name}`;
}

/** The kind of a task: its name without the number at its end. */
export function kindOf(name) {
  return name.replace(/[-_ ]?\d+$/, "");
}
