// Moving about in time and in the chart: buttons, keys, the wheel, dragging, and the tooltip.

import { byId, setAttribute, setText, showTip } from "./dom.js";
import { find, nameOf } from "./find.js";
import { hit, words } from "./hit.js";
import { AXIS } from "./rows.js";
import { clock } from "./words.js";

const CLICK_PX = 4;
const SPEEDS = [1, 5, 20, 60, 300, 1000, 5000];

export class Controls {
  /** `page` has the state, the gantt, the view and the playhead, and changes them. */
  constructor(page) {
    this.page = page;
    this.play = byId("play");
    this.speed = byId("speed");
    this.scrub = byId("scrub");
    this.live = byId("live");
    this.isScrubbing = false;
    this.buttons();
    this.pointer(page.gantt.canvas);
    this.axis();
    window.addEventListener("keydown", (event) => this.key(event));
  }

  buttons() {
    const { page } = this;
    const on = (id, act) => byId(id).addEventListener("click", act);
    on("play", () => this.togglePlay());
    on("live", () => this.goLive());
    on("zoom-in", () => this.zoom(0.6));
    on("zoom-out", () => this.zoom(1 / 0.6));
    on("show-all", () => page.view.showAll(page.edge));
    on("follow", () => this.follow());
    on("open-help", () => byId("help").showModal());
    this.scrub.addEventListener("input", () => page.goTo((Number(this.scrub.value) / 1000) * page.edge));
    for (const name of ["rows", "density", "scale"]) {
      const choice = byId(name);
      choice.value = page.choice[name];
      choice.addEventListener("change", () => {
        page.choice[name] = choice.value;
        page.view.scale = page.choice.scale;
      });
    }
    const ended = byId("ended");
    ended.checked = page.choice.ended;
    ended.addEventListener("change", () => { page.choice.ended = ended.checked; });
    byId("find").addEventListener("submit", (event) => {
      event.preventDefault();
      this.find(byId("find-text").value);
    });
    this.speed.addEventListener("change", () => {
      if (page.playhead.isPlaying) page.playhead.play(Number(this.speed.value));
    });
    for (const speed of SPEEDS) this.speed.append(new Option(`${speed}× real time`, speed));
    this.speed.value = "60";
  }

  /** Offers a speed that the server named as well, and chooses it. */
  offerSpeed(speed) {
    if (![...this.speed.options].some((option) => Number(option.value) === speed)) {
      this.speed.prepend(new Option(`${speed}× real time`, speed));
    }
    this.speed.value = String(speed);
  }

  find(typed) {
    const name = nameOf(this.page.history, typed);
    const thing = name ? find(this.page.history, name) : null;
    const isMissing = !thing && typed.trim();
    const isKnown = this.page.history.changes > 0;
    const words = isKnown ? `nothing is called “${typed.trim()}”` : "the run is not loaded yet";
    setText(byId("find-said"), isMissing ? words : "");
    if (thing) this.page.select(name, true);
  }

  togglePlay() {
    const { playhead, edge } = this.page;
    if (playhead.isPlaying) {
      playhead.pause();
      return;
    }
    // At the end of a run that is over it begins again.
    if (playhead.isLive) this.page.goTo(this.page.history.over ? 0 : edge);
    playhead.play(Number(this.speed.value));
  }

  goLive() {
    this.page.playhead.live();
    if (this.page.view.mode === "free") this.page.view.follow();
  }

  follow() {
    const { view, edge } = this.page;
    if (view.mode === "all") view.span = Math.max(20, Math.min(view.span, edge * 0.25));
    view.follow();
  }

  /** Zooms around the playhead if it is in sight, or around the middle. */
  zoom(factor, around) {
    const { view, head, edge } = this.page;
    const isSeen = head >= view.from && head <= view.until;
    view.zoom(factor, around ?? (isSeen ? head : view.from + view.span / 2), edge);
  }

  pointer(canvas) {
    const { page } = this;
    let drag = null;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("wheel", (event) => {
      const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
      if (event.ctrlKey || event.metaKey) {
        const [x] = at(event);
        this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.004), page.gantt.timeAt(Math.max(x, page.gantt.gutter), page.view));
      } else if (isSideways) {
        const pixels = event.deltaX || event.deltaY;
        page.view.pan((pixels / (page.gantt.size.width - page.gantt.gutter)) * page.view.span, page.edge);
      } else return;
      event.preventDefault();
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const [x, y] = at(event);
      drag = { x, y, from: page.view.from, top: page.gantt.scroller.scrollTop, isAxis: y < AXIS, isMoved: false };
      canvas.setPointerCapture(event.pointerId);
      showTip("", event);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (!drag) {
        this.point(x, y, event);
        return;
      }
      if (!drag.isMoved && Math.hypot(x - drag.x, y - drag.y) < CLICK_PX) return;
      drag.isMoved = true;
      if (drag.isAxis) {
        page.goTo(page.gantt.timeAt(x, page.view));
        return;
      }
      const perPixel = page.view.span / (page.gantt.size.width - page.gantt.gutter);
      page.view.pan(drag.from - (x - drag.x) * perPixel - page.view.from, page.edge);
      // A finger scrolls the rows by itself.
      if (event.pointerType === "mouse") page.gantt.scroller.scrollTop = drag.top - (y - drag.y);
    });
    canvas.addEventListener("pointerup", (event) => {
      const [x, y] = at(event);
      if (drag && !drag.isMoved) this.click(x, y);
      drag = null;
    });
    canvas.addEventListener("pointercancel", () => { drag = null; });
    canvas.addEventListener("pointerleave", (event) => showTip("", event));
    canvas.addEventListener("dblclick", (event) => this.zoom(0.5, page.gantt.timeAt(at(event)[0], page.view)));
  }

  point(x, y, event) {
    const { page } = this;
    const found = hit(page.gantt, page.state, x, y);
    const isSomething = found.span !== undefined || found.vm || found.host;
    const cursor = found.isAxis ? "col-resize" : isSomething ? "pointer" : "grab";
    if (page.gantt.canvas.style.cursor !== cursor) page.gantt.canvas.style.cursor = cursor;
    showTip(found.isAxis ? (found.time >= 0 ? clock(found.time) : "") : words(found, page.state), event);
  }

  click(x, y) {
    const { page } = this;
    const found = hit(page.gantt, page.state, x, y);
    if (found.isAxis) page.goTo(found.time);
    else if (found.span !== undefined) page.select(`task${page.history.tasks[page.history.spans.task[found.span]].id}`);
    else if (found.vm) page.select(`vm${found.vm.id}`);
    else if (found.host) page.select(`host${found.host.id}`);
  }

  axis() {
    const scroller = this.page.gantt.scroller;
    scroller.addEventListener("scroll", () => { this.page.gantt.size.top = scroller.scrollTop; }, { passive: true });
  }

  key(event) {
    const { page } = this;
    const { target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (target.matches?.("input:not([type=checkbox]), select, textarea")) return;
    const step = page.view.span * (event.shiftKey ? 0.5 : 0.1);
    const keys = {
      ArrowLeft: () => page.view.pan(-step, page.edge),
      ArrowRight: () => page.view.pan(step, page.edge),
      "+": () => this.zoom(0.6),
      "=": () => this.zoom(0.6),
      "-": () => this.zoom(1 / 0.6),
      Home: () => { page.goTo(0); page.view.reveal(0); },
      End: () => this.goLive(),
      l: () => this.goLive(),
      L: () => this.goLive(),
      a: () => page.view.showAll(page.edge),
      f: () => this.follow(),
      ",": () => page.goTo(page.head - page.view.span / 100),
      ".": () => page.goTo(page.head + page.view.span / 100),
      "/": () => byId("find-text").focus(),
      "?": () => byId("help").showModal(),
      Escape: () => page.select(""),
    };
    // The space bar presses a button that has the focus, and scrolls a list.
    if (!target.matches?.("button, [type=checkbox], .list, summary")) keys[" "] = () => this.togglePlay();
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  show() {
    const { playhead, edge, head, view } = this.page;
    setText(this.play, playhead.isPlaying ? "Pause" : "Play");
    setAttribute(this.play, "aria-pressed", playhead.isPlaying);
    setAttribute(this.live, "aria-pressed", playhead.isLive);
    setText(this.live, this.page.history.over ? "End" : "Live");
    setAttribute(byId("show-all"), "aria-pressed", view.mode === "all");
    setAttribute(byId("follow"), "aria-pressed", view.mode === "follow");
    const value = String(Math.round((head / Math.max(edge, 1e-9)) * 1000));
    if (document.activeElement !== this.scrub || playhead.isLive || playhead.isPlaying) {
      if (this.scrub.value !== value) this.scrub.value = value;
    }
    setAttribute(this.scrub, "aria-valuetext", clock(head));
  }
}
