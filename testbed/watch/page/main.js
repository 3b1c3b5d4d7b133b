// The live page of a run: it takes the server's changes, and draws the run at the playhead. One loop,
// at the screen's pace; it draws only what has changed, and the panels four times a second.

import { Actions } from "./actions.js";
import { Cards, Fidelity, Hosts, MarketTable, Queue, VmTable } from "./panels.js";
import { Charts } from "./charts.js";
import { Controls } from "./controls.js";
import { Events } from "./events.js";
import { find } from "./find.js";
import { Gantt } from "./gantt.js";
import { History } from "./history.js";
import { HostMap } from "./hostmap.js";
import { Loading } from "./loading.js";
import { SHEET, onPaper } from "./paper.js";
import { PlaceKeeper, readPlace } from "./place.js";
import { Playhead, RunClock } from "./clock.js";
import { Selection } from "./selection.js";
import { Status } from "./status.js";
import { Stream } from "./stream.js";
import { MARKETS, marketName } from "./market.js";
import { boundedHosts } from "./usage.js";
import { View } from "./view.js";
import { byId, setAttribute, setText } from "./dom.js";
import { isFrozen, vmState, vmsAt } from "./moment.js";
import { onTheme } from "./theme.js";
import { count } from "./words.js";

const PANELS_EVERY_MS = 250;
const FEW_CHANGES = 100;
const CHARTS_EVERY_MS = 50;
/** While a run is being loaded it is drawn now and then: drawing would keep it from coming. */
const LOADING_EVERY_MS = 200;
/** Readers who asked for less motion see the run move in steps. */
const STILL_EVERY_MS = 1000;
/** With more rows than these the chart has the VMs of one host, and a map has the hosts. */
const MANY_ROWS = 200;
/** A bar of fewer pixels is zoomed to by whoever looks for it. */
const SEEN_PX = 24;

class Page {
  constructor() {
    const place = readPlace();
    this.choice = place.choice;
    this.selected = place.selected;
    this.history = new History();
    /** Changes that came before the run's description. */
    this.early = [];
    this.clock = new RunClock();
    this.playhead = new Playhead();
    this.view = new View();
    this.edge = 0;
    this.head = 0;
    this.run = null;
    this.news = null;
    this.noun = "task";
    this.lostSince = null;
    this.hasPlace = place.hasPlace;
    this.playback = null;
    this.keeper = new PlaceKeeper();
    this.drawTimes = [];
    this.drawnFor = "";
    this.panelsAt = -Infinity;
    this.chartsAt = -Infinity;
    this.drawnAt = -Infinity;
    /** Milliseconds from the page's beginning until its chart had its first bar; null before. */
    this.firstBarAt = null;
    this.tickedAt = -Infinity;
    this.stillness = matchMedia("(prefers-reduced-motion: reduce)");
    if (place.window.span > 0) {
      Object.assign(this.view, { mode: place.window.mode, span: place.window.span, from: place.window.from ?? 0 });
    }
    this.view.scale = this.choice.scale;
    if (place.head !== null) this.playhead.goTo(place.head);

    const select = (name, isFromList) => this.select(name, isFromList);
    this.gantt = new Gantt(byId("gantt"), byId("gantt-canvas"), byId("gantt-spacer"));
    new ResizeObserver(() => { this.gantt.measure(); this.drawnFor = ""; }).observe(byId("gantt"));
    this.map = new HostMap((name) => this.select(name, true));
    this.loading = new Loading();
    this.controls = new Controls(this);
    this.charts = new Charts(byId("charts"), { onTime: (time) => this.goTo(time) });
    this.actions = new Actions();
    this.status = new Status();
    this.selection = new Selection({ select, act: (action, target) => this.actions.open(action, target) });
    this.panels = [
      new Cards(byId("cards")), new VmTable(byId("vms"), { select }), new Queue(byId("queue"), { select }), new MarketTable(byId("markets-body")),
      new Hosts(byId("hosts-body"), { select }), new Fidelity(byId("fidelity")), this.controls, this.actions,
    ];
    this.events = new Events(byId("events"), { select, choice: this.choice });
    onTheme(() => { this.drawnFor = ""; });
    onPaper((isPrinted) => this.print(isPrinted ? SHEET : null));
    addEventListener("pagehide", () => this.keeper.keep(Infinity, this));
    this.stream = new Stream({
      run: (run, isOther) => this.describe(run, isOther),
      changes: (list) => {
        if (this.run?.experiment) this.history.apply(list);
        else this.early.push(...list);
        // What just happened is shown at once; a run that is being loaded need not be.
        if (list.length < FEW_CHANGES) this.panelsAt = -Infinity;
      },
      now: (news) => this.take(news),
      lost: (since) => {
        this.lostSince = since;
        this.clock.stop();
      },
      found: () => { this.lostSince = null; },
    });
    requestAnimationFrame((real) => this.frame(real));
  }

  describe(run, isOther) {
    if (isOther) this.forget();
    // A run is played once its end is known: with the first news.
    if ((this.run === null || isOther) && !this.hasPlace) this.playback = run.playback;
    this.run = run;
    this.noun = run.task_noun ?? "task";
    this.status.run(run, this.noun);
    if (run.experiment) {
      this.history.describe(run);
      this.history.apply(this.early.splice(0));
    }
    document.body.dataset.run = run.run;
  }

  take(news) {
    this.news = news;
    this.clock.news(news, this.run?.speedup ?? null);
    const { playback } = this;
    if (!playback) return;
    this.playback = null;
    this.controls.offerSpeed(playback.speed);
    this.playhead.goTo(playback.from_s);
    this.playhead.play(playback.speed);
  }

  /** Another run is served here now: nothing of the one before is true of it. */
  forget() {
    this.history = new History();
    this.early = [];
    this.clock.forget();
    this.playhead.live();
    this.view.showAll(0);
    this.news = null;
    this.selected = "";
    this.hasPlace = false;
    this.events.forget();
  }

  /** What all that draws and says is told. */
  get state() {
    const { history, view, head, edge, run, news, noun, choice, selected, lostSince, playhead } = this;
    return {
      history, view, head, edge, run, news, noun, choice, selected, lostSince, playhead, rows: this.rows, host: this.host,
      isLive: playhead.isLive, connected: lostSince === null, selectedTask: find(history, selected)?.task ?? null,
    };
  }

  /** The rows that the chart shows: those that were chosen, or all of them as far as there is room. */
  get rows() {
    const { history, choice } = this;
    const hasMap = boundedHosts(history).length > 0;
    if (choice.rows === "host" && !hasMap) return "all";
    if (choice.rows !== "auto") return choice.rows;
    let lanes = 0;
    for (const strip of history.strips.values()) lanes += strip.lanes.length;
    const customers = history.strips.size ? history.vmOfRequest.size : 0;
    return hasMap && history.hosts.size > 1 && lanes + history.vms.length - customers > MANY_ROWS ? "host" : "all";
  }

  /** The host whose VMs the chart shows where it shows one host: the one that was chosen, or the first. */
  get host() {
    const { history, choice } = this;
    if (history.hosts.has(choice.host)) return choice.host;
    return boundedHosts(history)[0]?.id ?? null;
  }

  goTo(time) {
    this.playhead.goTo(Math.min(Math.max(0, time), this.edge));
    // The edge is where the run goes on.
    if (time >= this.edge && this.edge > 0 && !this.playhead.isPlaying) this.playhead.live();
  }

  /** Selects a thing by its name; brings it into sight if it was not chosen in the chart: its host, its row, its time. */
  select(name, isToBeShown = false) {
    this.selected = name;
    this.panelsAt = -Infinity;
    const thing = isToBeShown && name ? find(this.history, name) : null;
    if (!thing) return;
    const { history, gantt, view, edge } = this;
    const span = thing.task?.spans.at(-1);
    const vm = thing.vm ?? (span === undefined ? null : history.vms[history.spans.vm[span]]);
    const host = thing.host?.id ?? vm?.host;
    if (this.rows === "host" && host !== undefined) this.choice.host = host;
    if (vm) {
      if (this.rows === "now" || this.rows === "window") this.choose("rows", "all");
      const times = span === undefined ? vm : { from: history.spans.from.at(span), until: history.spans.until.at(span) };
      const [from, until] = [times.from, Math.min(times.until, edge)];
      const [left, right] = [gantt.x(from, view), gantt.x(until, view)];
      const isSeen = right - left >= SEEN_PX && right > gantt.gutter && left < gantt.size.width;
      if (!isSeen && until > from) view.show(from, until, edge);
    }
    gantt.lay(this.state);
    const entry = vm ? gantt.rows.entryOf(vm) : gantt.rows.entries.find((it) => it.kind === "host" && it.id === host);
    if (entry) gantt.scroller.scrollTop = Math.max(0, entry.top - gantt.size.height / 3);
  }

  /** Sets a choice of the reader and what shows it. */
  choose(name, value) {
    this.choice[name] = value;
    byId(name).value = value;
  }

  frame(real) {
    requestAnimationFrame((next) => this.frame(next));
    const isStill = this.stillness.matches && real - this.tickedAt < STILL_EVERY_MS;
    if (!isStill) {
      this.tickedAt = real;
      this.edge = this.clock.at(real, this.history.lastTime);
    }
    this.head = this.playhead.tick(real, this.edge);
    this.view.tick(this.edge, this.head);
    const begun = performance.now();
    const isDrawn = this.draw(real);
    if (isDrawn) this.took(performance.now() - begun);
    if (real - this.panelsAt >= PANELS_EVERY_MS) {
      this.panelsAt = real;
      this.show(real);
    }
    this.keeper.keep(real, this);
  }

  /** Draws the charts if a pixel of them would be another. */
  draw(real) {
    const { view, gantt } = this;
    if (!this.loading.isDone && real - this.drawnAt < LOADING_EVERY_MS) return false;
    const pixels = (time) => Math.round(view.part(time) * gantt.size.width * 2);
    const wanted = [
      this.history.changes, view.from, view.span, view.scale, this.choice.host, pixels(this.edge), pixels(this.head), gantt.size.width, gantt.size.height,
      gantt.size.top, this.selected, this.choice.rows, this.choice.density, this.playhead.isLive, this.run?.run,
    ].join("|");
    const isOther = wanted !== this.drawnFor;
    if (isOther) {
      this.drawnFor = wanted;
      const { state } = this;
      this.map.draw(state);
      gantt.draw(state);
      this.drawnAt = real;
      if (gantt.drawn > 0) this.firstBarAt ??= Math.round(performance.now());
      this.areChartsStale = true;
    }
    if ((this.areChartsStale || this.charts.isStale) && real - this.chartsAt >= CHARTS_EVERY_MS) {
      this.chartsAt = real;
      this.areChartsStale = false;
      this.charts.draw(this.state);
      return true;
    }
    return isOther;
  }

  /** Draws all charts at once for a sheet of paper, or with null for the screen again. */
  print(sheet) {
    this.gantt.sheet = sheet;
    this.gantt.measure();
    this.map.print(sheet ? sheet.width : null);
    this.charts.print(sheet ? [sheet.third, sheet.plot] : null);
    this.drawnFor = "";
    this.drawnAt = this.chartsAt = -Infinity;
    const now = performance.now();
    this.draw(now);
    this.show(now);
    const { shown, all } = this.gantt.printed;
    setText(byId("gantt-printed"), shown < all ? `The first ${count(shown)} of ${count(all)} rows: a sheet has no room for more. On the screen, "Rows" chooses others.` : "");
  }

  took(ms) {
    this.drawTimes.push(ms);
    if (this.drawTimes.length > 240) this.drawTimes.shift();
  }

  show(real) {
    const { state } = this;
    for (const panel of this.panels) panel.show(state);
    this.charts.say(state);
    this.map.show(state);
    this.loading.show(state);
    this.status.show(state, real);
    this.selection.show(state, real);
    this.events.show(state, real);
    this.tell(state);
  }

  /** What tests and measurements read: the page's state as attributes of its body. */
  tell({ history, head, edge, news, lostSince, view, selected }) {
    const sorted = [...this.drawTimes].sort((a, b) => a - b);
    const quantile = (part) => (sorted.length ? sorted[Math.floor((sorted.length - 1) * part)].toFixed(2) : "");
    const there = vmsAt(history, head);
    const told = {
      changes: history.changes, clock: edge.toFixed(3), head: head.toFixed(3), live: this.playhead.isLive,
      coordinator: news?.coordinator ?? "unknown", over: history.over !== null, connection: lostSince === null ? "open" : "lost",
      window: `${view.mode},${view.from.toFixed(3)},${view.span.toFixed(3)}`, selected, rows: this.rows, host: this.host ?? "", bars: this.gantt.drawn, spans: history.spans.length,
      vms: there.length, frozen: there.filter((vm) => isFrozen(vmState(vm, head))).length, acts: history.acts.length,
      draw: `${quantile(0.5)} ${quantile(0.95)}`, first: this.firstBarAt ?? "",
    };
    for (const [name, value] of Object.entries(told)) setAttribute(document.body, `data-${name}`, value);
    const label = `Gantt chart: ${there.length} VMs at this time, ${history.spans.length} spans of work so far. The table of VMs says the same in words.`;
    setAttribute(this.gantt.canvas, "aria-label", label);
    if (this.rows !== "host") setText(byId("gantt-title"), "VMs and what runs there");
    setText(byId("gantt-empty"), this.emptyWords());
    const has = {
      burstable: history.markets.has("burstable"), work: !history.isProvider, customers: history.strips.size > 0, background: history.hasBackground, credits: history.hasCredits,
    };
    for (const entry of document.querySelectorAll("[data-has]")) entry.hidden = !has[entry.dataset.has];
    for (const market of history.isProvider ? MARKETS : []) {
      for (const word of document.querySelectorAll(`[data-market=${market.key}]`)) setText(word, marketName(market, history));
    }
    const { shown, all } = this.gantt.links;
    const some = shown < all ? `${count(shown)} of the ${count(all)} migrations in this window are drawn, evenly spread. A task that is selected has all of its own.` : "";
    const crowded = this.gantt.isCrowded ? "Too many VMs for each to be seen: drawn is how many of each host’s vCPUs they use. Zoom in to see each VM." : "";
    setText(byId("gantt-note"), [some, crowded].filter(Boolean).join(" "));
  }

  /** Why the chart has no row. */
  emptyWords() {
    const { history, gantt, rows } = this;
    if (gantt.rows.entries.length) return "";
    if (!history.vms.length) return history.changes ? "No VM has been launched yet." : "";
    return { window: "No VM is there in this window of time.", now: "No VM is there at the playhead.", host: "This host has had no VM." }[rows] ?? "";
  }
}

new Page();
