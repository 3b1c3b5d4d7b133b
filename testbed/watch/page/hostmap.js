// The hosts as a heat map: a cell for each, as dark as the share of its vCPUs that VMs use at the playhead. A line at the
// foot of a cell says which markets use it. A click on a cell, or the keys, choose the host whose VMs the chart shows.

import { MARKETS, marketWords } from "./market.js";
import { colours, fit } from "./theme.js";
import { Usage, boundedHosts, usageShown, wholeUsage } from "./usage.js";
import { byId, setAttribute, setText, showTip } from "./dom.js";
import { amount, clock, count, counted, hostVcpus, percent } from "./words.js";

/** Least and greatest side of a cell in pixels, and the greatest height of the map. */
const [LEAST, MOST, HIGHEST] = [3, 56, 250];
/** Side of a cell from which on it says its share in words. */
const WORDS_FROM = 40;
/** Strength of the colour of a host that VMs hardly use. */
const FAINTEST = 0.1;

export class HostMap {
  /** `choose` takes the name of the host that was clicked. */
  constructor(choose) {
    this.section = byId("map");
    this.box = byId("map-box");
    this.canvas = byId("map-canvas");
    this.hosts = [];
    this.drawnFor = "";
    this.size = 0;
    this.columns = 1;
    this.width = 0;
    this.isPrinted = false;
    new ResizeObserver(([entry]) => {
      if (!this.isPrinted) this.width = Math.floor(entry.contentRect.width);
      this.drawnFor = "";
    }).observe(this.box);
    this.canvas.addEventListener("pointermove", (event) => {
      const host = this.at(event.offsetX, event.offsetY);
      this.canvas.style.cursor = host ? "pointer" : "default";
      showTip(host ? this.words(host) : "", event);
    });
    this.canvas.addEventListener("pointerleave", (event) => showTip("", event));
    this.canvas.addEventListener("click", (event) => {
      const host = this.at(event.offsetX, event.offsetY);
      if (host) choose(`host${host.id}`);
    });
    this.box.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns };
      const step = steps[event.key];
      if (!step || !this.hosts.length) return;
      event.preventDefault();
      event.stopPropagation();
      const now = this.hosts.findIndex((host) => host.id === this.state.host);
      const next = this.hosts[Math.min(this.hosts.length - 1, Math.max(0, now + step))];
      choose(`host${next.id}`);
      setText(byId("map-said"), this.words(next).replaceAll("\n", ", "));
    });
  }

  /** Takes the width of a sheet of paper, or with null that of its box on the screen. */
  print(width) {
    this.isPrinted = width !== null;
    this.width = width ?? Math.floor(this.box.getBoundingClientRect().width);
    this.drawnFor = "";
  }

  /** Draws the map if something of it is another; it is there for the rows of one host alone. */
  draw(state) {
    const isShown = state.rows === "host";
    if (this.section.hidden === isShown) this.section.hidden = !isShown;
    if (!isShown || this.width < 50) return;
    const { history, head, host } = state;
    const wanted = [history.changes, head.toFixed(2), host, this.width, state.selected].join("|");
    if (wanted === this.drawnFor && this.history === history) return;
    Object.assign(this, { drawnFor: wanted, history, state });
    this.hosts = boundedHosts(history);
    Object.assign(this, { usage: usageShown(state).byHost, isMean: usageShown(state).isMean });
    this.fit();
    const height = Math.ceil(this.hosts.length / this.columns) * this.size;
    const ink = fit(this.canvas, this.width, height);
    const theme = colours();
    ink.fillStyle = theme.bg;
    ink.fillRect(0, 0, this.width, height);
    this.hosts.forEach((it, n) => this.cell(ink, theme, it, n));
    const chosen = this.hosts.findIndex((it) => it.id === host);
    if (chosen >= 0) {
      const [x, y] = this.corner(chosen);
      ink.strokeStyle = theme.fg;
      ink.lineWidth = this.size > 8 ? 2 : 1.5;
      ink.strokeRect(x + 0.5, y + 0.5, this.size - 2, this.size - 2);
    }
  }

  /** Chooses the largest side of cells with which all hosts have room. */
  fit() {
    const { width, hosts } = this;
    let size = MOST;
    while (size > LEAST && Math.ceil(hosts.length / Math.floor(width / size)) * size > HIGHEST) size -= 1;
    this.size = size;
    this.columns = Math.max(1, Math.floor(width / size));
  }

  corner(n) {
    return [(n % this.columns) * this.size, Math.floor(n / this.columns) * this.size];
  }

  at(x, y) {
    const column = Math.floor(x / this.size);
    return column < this.columns ? this.hosts[Math.floor(y / this.size) * this.columns + column] ?? null : null;
  }

  cell(ink, theme, host, n) {
    const { size } = this;
    const [x, y] = this.corner(n);
    const side = size - (size > 5 ? 2 : size > 3 ? 1 : 0);
    const { head } = this.state;
    if (host.from > head) return;
    const usage = this.usage.get(host.id) ?? new Usage();
    const share = usage.vcpus / host.vcpus;
    const hasWords = size >= WORDS_FROM;
    const high = side - (hasWords ? 16 : 0);
    ink.fillStyle = theme.life;
    ink.fillRect(x, y, side, high);
    const isLost = host.until <= head && !this.isMean;
    if (isLost) {
      ink.strokeStyle = theme.limit;
      ink.lineWidth = 1;
      ink.strokeRect(x + 0.5, y + 0.5, side - 1, high - 1);
    } else if (share > 0) {
      ink.globalAlpha = FAINTEST + (1 - FAINTEST) * Math.min(1, share);
      ink.fillStyle = theme.heat;
      ink.fillRect(x, y, side, high);
      ink.globalAlpha = 1;
    }
    // Overcommitted: more is used than there is.
    if (share > 1.0001 && size > 5) {
      ink.fillStyle = theme.limit;
      ink.fillRect(x, y, side, 2);
    }
    if (size >= 12) this.foot(ink, theme, usage, host, [x, y + high, side]);
    if (!hasWords) return;
    ink.font = `11px ${theme.font}`;
    ink.textAlign = "center";
    ink.textBaseline = "middle";
    ink.fillStyle = theme.fg;
    ink.fillText(isLost ? "lost" : percent(share, 0).replace("+", ""), x + side / 2, y + side - 7, side);
  }

  /** The line at the foot of a cell: its used vCPUs by market. */
  foot(ink, theme, usage, host, [x, bottom, side]) {
    const all = Math.max(host.vcpus, usage.vcpus);
    const high = Math.max(3, Math.round(side / 9));
    let left = x;
    for (const { key, colour } of MARKETS) {
      const wide = (usage[key] / all) * side;
      ink.fillStyle = theme.work[colour];
      if (wide > 0) ink.fillRect(left, bottom - high, wide, high);
      left += wide;
    }
  }

  /** Lines about a host at the playhead. */
  words(host) {
    const { head } = this.state;
    if (host.from > head) return `${host.name}: joins at ${clock(host.from)}`;
    if (host.until <= head && !this.isMean) return `${host.name}: lost at ${clock(host.until)}${host.why ? `, ${host.why}` : ""}`;
    const usage = this.usage.get(host.id) ?? new Usage();
    const share = percent(usage.vcpus / host.vcpus, 0).replace("+", "");
    const isMean = this.isMean ? " on average" : "";
    return [
      host.name, `${amount(usage.vcpus)} of ${hostVcpus(host)} in use${isMean}, ${share}`,
      `by market: ${marketWords(usage, amount, this.state.history)}`, `${counted(usage.vms, "VM")}${this.isMean ? " in all" : ""}`,
    ].join("\n");
  }

  /** Says the map in words, for a reader and for a screen reader. */
  show(state) {
    if (state.rows !== "host" || !this.state) return;
    const chosen = state.history.hosts.get(state.host);
    const whole = wholeUsage(state);
    if (!whole) return;
    const { all, capacity, full, idle, hosts, isMean } = whole;
    const share = percent(all.vcpus / capacity, 0).replace("+", "");
    const when = isMean ? "on average over the run" : "at the playhead";
    const ends = isMean ? "" : ` ${count(full)} full, ${count(idle)} idle.`;
    const words = `${counted(hosts, "host")}: ${amount(all.vcpus)} of ${count(capacity)} vCPUs in use ${when} (${share}): ${marketWords(all, amount, state.history)}.${ends}`;
    setText(byId("map-words"), words);
    setAttribute(this.canvas, "aria-label", `Heat map of the hosts. ${words}`);
    setText(byId("gantt-title"), chosen ? `Hosts, and the VMs of ${chosen.name}` : "Hosts");
  }
}
