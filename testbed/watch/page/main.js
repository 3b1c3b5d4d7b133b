// The live page of a run: it takes the server's changes, and draws the run at the playhead. One loop,
// at the screen's pace; it draws only what has changed, and the panels four times a second.

import { Actions } from "./actions.js";
import { Cards, Fidelity, Hosts, Queue, VmTable } from "./panels.js";
import { Charts } from "./charts.js";
import { Controls } from "./controls.js";
import { Events } from "./events.js";
import { Gantt } from "./gantt.js";
import { History } from "./history.js";
import { PlaceKeeper, readPlace } from "./place.js";
import { Playhead, RunClock } from "./clock.js";
import { Selection, find } from "./selection.js";
import { Status } from "./status.js";
import { Stream } from "./stream.js";
import { View } from "./view.js";
import { byId, setAttribute, setText } from "./dom.js";
import { isFrozen, vmState } from "./moment.js";
import { onTheme } from "./theme.js";

const PANELS_EVERY_MS = 250;
const FEW_CHANGES = 100;
const CHARTS_EVERY_MS = 50;
/** Readers who asked for less motion see the run move in steps. */
const STILL_EVERY_MS = 1000;

class Page {
  constructor() {
    const place = readPlace();
    this.choice = place.choice;
    this.selected = place.selected;
    this.history = new History();
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
    this.tickedAt = -Infinity;
    this.stillness = matchMedia("(prefers-reduced-motion: reduce)");
    if (place.window.span > 0) {
      Object.assign(this.view, { mode: place.window.mode, span: place.window.span, from: place.window.from ?? 0 });
    }
    if (place.head !== null) this.playhead.goTo(place.head);

    const select = (name, isFromList) => this.select(name, isFromList);
    this.gantt = new Gantt(byId("gantt"), byId("gantt-canvas"), byId("gantt-spacer"));
    new ResizeObserver(() => { this.gantt.measure(); this.drawnFor = ""; }).observe(byId("gantt"));
    this.controls = new Controls(this);
    this.charts = new Charts(byId("charts"), { onTime: (time) => this.goTo(time) });
    this.actions = new Actions();
    this.status = new Status();
    this.selection = new Selection({ select, act: (action, target) => this.actions.open(action, target) });
    this.panels = [
      new Cards(byId("cards")), new VmTable(byId("vms"), { select }), new Queue(byId("queue"), { select }),
      new Hosts(byId("hosts-body"), { select }), new Fidelity(byId("fidelity")), this.controls, this.actions,
    ];
    this.events = new Events(byId("events"), { select, choice: this.choice });
    onTheme(() => { this.drawnFor = ""; });
    addEventListener("pagehide", () => this.keeper.keep(Infinity, this));
    this.stream = new Stream({
      run: (run, isOther) => this.describe(run, isOther),
      changes: (list) => {
        this.history.apply(list);
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
      history, view, head, edge, run, news, noun, choice, selected, lostSince, playhead,
      isLive: playhead.isLive, connected: lostSince === null, selectedTask: find(history, selected)?.task ?? null,
    };
  }

  goTo(time) {
    this.playhead.goTo(Math.min(Math.max(0, time), this.edge));
    // The edge is where the run goes on.
    if (time >= this.edge && this.edge > 0 && !this.playhead.isPlaying) this.playhead.live();
  }

  /** Selects a thing by its name, and shows where it is if it was not chosen in the chart. */
  select(name, isToBeShown = false) {
    this.selected = name;
    this.panelsAt = -Infinity;
    if (!isToBeShown || !name) return;
    const thing = find(this.history, name);
    const span = thing?.task?.spans.at(-1);
    const vm = thing?.vm ?? (span === undefined ? null : this.history.vms[this.history.spans.vm[span]]);
    const entry = vm && this.gantt.rows.of.get(vm.index);
    if (entry) this.gantt.scroller.scrollTop = Math.max(0, entry.top - this.gantt.size.height / 3);
    if (span !== undefined) this.view.reveal(this.history.spans.from.at(span));
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
    const perSecond = gantt.size.width / view.span;
    const pixels = (time) => Math.round(time * perSecond * 2);
    const wanted = [
      this.history.changes, view.from, view.span, pixels(this.edge), pixels(this.head), gantt.size.width, gantt.size.height,
      gantt.size.top, this.selected, this.choice.rows, this.choice.density, this.playhead.isLive, this.run?.run,
    ].join("|");
    const isOther = wanted !== this.drawnFor;
    if (isOther) {
      this.drawnFor = wanted;
      gantt.draw(this.state);
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

  took(ms) {
    this.drawTimes.push(ms);
    if (this.drawTimes.length > 240) this.drawTimes.shift();
  }

  show(real) {
    const { state } = this;
    for (const panel of this.panels) panel.show(state);
    this.charts.say(state);
    this.status.show(state, real);
    this.selection.show(state, real);
    this.events.show(state, real);
    this.tell(state);
  }

  /** What tests and measurements read: the page's state as attributes of its body. */
  tell({ history, head, edge, news, lostSince, view, selected }) {
    const sorted = [...this.drawTimes].sort((a, b) => a - b);
    const quantile = (part) => (sorted.length ? sorted[Math.floor((sorted.length - 1) * part)].toFixed(2) : "");
    const there = history.vms.filter((vm) => vm.from <= head && head < vm.until);
    const told = {
      changes: history.changes, clock: edge.toFixed(3), head: head.toFixed(3), live: this.playhead.isLive,
      coordinator: news?.coordinator ?? "unknown", over: history.over !== null, connection: lostSince === null ? "open" : "lost",
      window: `${view.mode},${view.from.toFixed(3)},${view.span.toFixed(3)}`, selected, bars: this.gantt.drawn, spans: history.spans.length,
      vms: there.length, frozen: there.filter((vm) => isFrozen(vmState(vm, head))).length, acts: history.acts.length,
      draw: `${quantile(0.5)} ${quantile(0.95)}`,
    };
    for (const [name, value] of Object.entries(told)) setAttribute(document.body, `data-${name}`, value);
    const label = `Gantt chart: ${there.length} VMs at this time, ${history.spans.length} spans of work so far. The table of VMs says the same in words.`;
    setAttribute(this.gantt.canvas, "aria-label", label);
    setText(byId("gantt-empty"), history.vms.length ? "" : "No VM has been launched yet.");
  }
}

new Page();
