// The last events, as lines: up to the playhead, of one kind or about one thing. The server gives them
// a page at a time, the newest first; older ones come when the list is scrolled down to them.

import { byId, el, setAttribute, setText } from "./dom.js";
import { VirtualList } from "./list.js";
import { clock, count } from "./words.js";

const PAGE = 200;
const MOST = 20000;
const LEAST_MS = 700;

export class Events {
  constructor(box, { select, choice }) {
    this.choice = choice;
    this.items = [];
    this.isWhole = false;
    this.before = null;
    this.asking = null;
    this.askedAt = 0;
    this.askedFor = "";
    this.known = -1;
    this.kinds = byId("events-kind");
    this.about = byId("events-about");
    this.said = byId("events-said");
    this.list = new VirtualList(box, {
      make: () => {
        const button = el("button", { class: "event", type: "button", click: () => button.dataset.about && select(button.dataset.about) },
          el("span", { class: "e-time" }), el("span", { class: "e-kind" }), el("span", { class: "e-text" }));
        return el("div", { role: "listitem" }, button);
      },
      fill: (row, event) => this.fill(row, event),
      empty: "No event is like that.",
      nearEnd: () => this.older(),
    });
    this.about.value = choice.about;
    if (choice.kind) this.offer(choice.kind);
    this.kinds.value = choice.kind;
    this.kinds.addEventListener("change", () => this.filter());
    this.about.addEventListener("input", () => this.filter());
  }

  fill(row, event) {
    const button = row.firstChild;
    const [time, kind, text] = button.children;
    setText(time, clock(event.t));
    setText(kind, event.kind);
    setText(text, event.text);
    setAttribute(button, "title", event.text);
    setAttribute(row, "data-seq", event.seq);
    setAttribute(row, "data-kind", event.kind);
    if (event.about?.length) button.dataset.about = event.about[0];
    else delete button.dataset.about;
  }

  /** Adds a kind to those that can be chosen, in the order of the alphabet. */
  offer(kind) {
    const options = [...this.kinds.options];
    if (options.some((option) => option.value === kind)) return;
    const after = options.slice(1).find((option) => option.value > kind) ?? null;
    this.kinds.insertBefore(el("option", { value: kind }, kind), after);
  }

  filter() {
    this.choice.kind = this.kinds.value;
    // "vm 3" and "VM3" are vm3.
    this.choice.about = this.about.value.toLowerCase().replace(/\s+/g, "");
    this.asking?.abort();
    this.asking = null;
    this.askedFor = "";
  }

  forget() {
    this.asking?.abort();
    this.asking = null;
    Object.assign(this, { items: [], known: -1, askedFor: "", isWhole: false, before: null });
    this.list.set([]);
  }

  address(more) {
    const words = new URLSearchParams({ limit: PAGE, ...more });
    if (this.choice.kind) words.set("kind", this.choice.kind);
    if (this.choice.about) words.set("about", this.choice.about);
    if (this.until !== null) words.set("until_s", this.until);
    return `/api/events?${words}`;
  }

  /** Asks for what is new, if there is something: at most every so often. */
  show({ playhead, head, news, run, connected }, real) {
    if (!run || !connected) return;
    // While it plays, once for each time shown would be too often: the playhead in whole steps.
    this.until = playhead.isLive ? null : Number(head.toFixed(3));
    const wanted = [this.choice.kind, this.choice.about, this.until ?? "live"].join("|");
    const isOther = wanted !== this.askedFor;
    if (!isOther && (!playhead.isLive || news?.events === this.known)) return;
    if (this.asking || real - this.askedAt < (this.askedFor === "" ? 0 : LEAST_MS)) return;
    this.askedAt = real;
    this.askedFor = wanted;
    this.known = news?.events ?? -1;
    this.newest(isOther);
  }

  async newest(isOther) {
    const last = isOther ? -1 : (this.items[0]?.seq ?? -1);
    const answer = await this.ask(this.address(last < 0 ? {} : { after: last }));
    if (!answer) return;
    const { events, before } = answer;
    if (last < 0 || before > last + 1) {
      // All of them, or there are more new ones than an answer holds: the list begins anew.
      this.items = events;
      this.go(answer);
    } else if (events.length) {
      this.items = [...events, ...this.items].slice(0, MOST);
      this.list.set(this.items, events.length);
    }
    this.say();
  }

  async older() {
    if (this.isWhole || this.asking || this.before === null || this.items.length >= MOST) return;
    const answer = await this.ask(this.address({ before: this.before }));
    if (!answer) return;
    this.items = [...this.items, ...answer.events];
    this.go(answer);
    this.say();
  }

  /** Shows what there is by now. A server that found few looked at a part of the log, and says where to go on. */
  go({ before, first }) {
    this.before = before;
    this.isWhole = first;
    this.list.set(this.items);
  }

  async ask(address) {
    const asking = new AbortController();
    this.asking = asking;
    try {
      const answer = await fetch(address, { signal: asking.signal });
      const said = await answer.json();
      if (!answer.ok) throw new Error(said.error ?? `the server answers ${answer.status}`);
      for (const event of said.events) this.offer(event.kind);
      if (this.kinds.value !== this.choice.kind) this.kinds.value = this.choice.kind;
      return said;
    } catch (error) {
      if (!asking.signal.aborted) {
        setText(this.said, `the events can't be had now: ${error.message}`);
        // Asked again with the next news.
        this.known = -1;
      }
      return null;
    } finally {
      if (this.asking === asking) this.asking = null;
    }
  }

  say() {
    const { items, isWhole } = this;
    setText(this.said, items.length ? `${isWhole ? "all" : "the last"} ${count(items.length)}${isWhole ? "" : ", scroll for older ones"}` : "");
  }
}
