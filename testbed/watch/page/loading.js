// What is loaded of a run while it is being loaded: a bar over the chart, and its words.

import { byId, setText } from "./dom.js";
import { count } from "./words.js";

export class Loading {
  constructor() {
    this.box = byId("loading");
    this.words = byId("loading-words");
    this.bar = byId("loading-bar");
    this.isDone = false;
  }

  /** Shows how much has come; nothing once all changes that the server knew of at its last news have come. */
  show({ history, news, lostSince, run }) {
    const all = news?.changes ?? 0;
    // A run under way always has a few changes that the page has yet to get.
    if (history.changes > 0 && news && history.changes >= all * 0.98) this.isDone = true;
    if (!history.changes) this.isDone = false;
    const isShown = !this.isDone && lostSince === null && !news?.waits;
    if (this.box.hidden === isShown) this.box.hidden = !isShown;
    if (!isShown) return;
    if (all > 0) {
      this.bar.max = all;
      this.bar.value = history.changes;
      setText(this.words, `Loading the run: ${count(history.changes)} of ${count(all)} changes so far.`);
    } else {
      this.bar.removeAttribute("value");
      const why = run && !run.experiment ? run.may?.why_not : "";
      setText(this.words, why ? `Nothing to show yet: ${why}.` : "Waiting for the run’s log.");
    }
  }
}
