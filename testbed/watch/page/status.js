// Whose run it is, whether its coordinator is there, and what time it shows: the top of the page. It
// says plainly when what is shown stands still, and why.

import { byId, setAttribute, setText } from "./dom.js";
import { clock, counted, date, fixed, span } from "./words.js";

export class Status {
  constructor() {
    this.title = byId("title");
    this.lead = byId("lead");
    this.pill = byId("state");
    this.clock = byId("clock");
    this.date = byId("date");
    this.banner = byId("banner");
  }

  run(run, noun) {
    if (!run.experiment) {
      setText(this.lead, run.may?.why_not ?? "the run has not begun");
      return;
    }
    setText(this.title, run.experiment);
    document.title = `${run.experiment} – Dormouse`;
    const words = [];
    if (run.tasks) words.push(counted(run.tasks, noun));
    if (run.scheduler) words.push(`scheduler ${run.scheduler}`);
    words.push(run.mode === "live" ? "live" : "in virtual time");
    if (run.speedup) words.push(`${fixed(run.speedup, run.speedup % 1 ? 1 : 0)} times as fast as real time${run.share ? `, each vCPU ${run.share} of a core` : ""}`);
    if (run.deadline_s) words.push(`deadline ${span(run.deadline_s)}`);
    words.push(`seed ${run.seed}`);
    words.push(`run ${run.run}`);
    setText(this.lead, words.join(" · "));
  }

  show(state, real) {
    const { history, head, edge, run, isLive } = state;
    const { word, tone, banner, since } = this.say(state, real);
    setText(this.pill, word);
    setAttribute(this.pill, "class", `pill ${tone}`);
    setText(this.clock, clock(head));
    const present = state.lostSince === null ? "now" : "when last heard of";
    const end = history.over ? `the end of a run that is ${history.over.cancelled ? "cancelled" : history.over.complete ? "complete" : "over"}` : "now";
    const about = isLive ? (history.over ? "the end of the run" : present) : `${clock(Math.max(0, edge - head))} before ${end}`;
    const day = date(head, run?.calendar_unix_s);
    setText(this.date, day ? `${about}, ${day}` : about);
    if (this.banner.hidden === Boolean(banner)) this.banner.hidden = !banner;
    setText(byId("banner-words"), banner);
    setText(byId("banner-since"), since ? `(for ${since})` : "");
  }

  /** The word for the run's state, its tone, and a sentence for what is out of the ordinary, since when. */
  say({ history, head, news, lostSince, run }, real) {
    const { over } = history;
    if (lostSince !== null) {
      const since = span((real - lostSince) / 1000);
      const banner = over
        ? "The server of this page is away. The run is over; what is shown is all of it."
        : `No connection: the coordinator is away, and what is shown stands still. The page goes on by itself when it is back at ${location.host}.`;
      return { word: over ? "over" : "no connection", tone: over ? "s-over" : "s-away", banner, since };
    }
    if (over) {
      const word = over.cancelled ? "cancelled" : over.complete ? "complete" : "over";
      const banner = over.cancelled ? `The run was cancelled at ${clock(over.time)}: ${over.cancelled}` : "";
      // Before its end, what is shown is not so yet.
      if (head < over.time - 1e-6) return { word: "looking back", tone: "s-over", banner, since: "" };
      return { word, tone: over.complete && !over.cancelled ? "s-complete" : "s-over", banner, since: "" };
    }
    // A run that is over is there once its last change is.
    if (news?.waits) return { word: "waiting", tone: "s-away", banner: news.waits, since: "" };
    if (news?.trouble) return { word: "in trouble", tone: "s-away", banner: `The run can't be followed for now: ${news.trouble}`, since: "" };
    if (!run || !news || news.over) return { word: history.changes ? "loading" : "connecting", tone: "s-wait", banner: "", since: "" };
    if (news.coordinator === "none") return { word: "not over", tone: "s-live", banner: "", since: "" };
    if (news.coordinator === "away") {
      const banner = "The coordinator is away. What is shown stands still, and goes on by itself when the run is gone on with (dormouse resume).";
      return { word: "coordinator away", tone: "s-away", banner, since: span(news.real_age_s) };
    }
    const isLate = news.real_age_s > 3;
    const since = isLate ? span(news.real_age_s) : "";
    return { word: run.mode === "live" ? "live" : "running", tone: "s-live", banner: isLate ? "What is shown is late." : "", since };
  }
}
