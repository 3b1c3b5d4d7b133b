// The server's stream of changes. The page reconnects by itself, at once and then every second, and
// asks first whose run it is: a coordinator that was killed and gone on with has the same one, and the
// stream goes on behind the last change that was taken.

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 2000;

export class Stream {
  /**
   * `heard` has the functions run(description, isOther), changes(list), now(news), lost(since) and
   * found(); each is called when that happens.
   */
  constructor(heard) {
    this.heard = heard;
    this.next = 0;
    this.run = null;
    this.isNamed = false;
    this.source = null;
    this.coordinator = null;
    this.wait = FIRST_WAIT_MS;
    this.lostSince = null;
    this.retry = null;
    // A page that nobody sees lets go of its connection: browsers have six for all pages of a server.
    document.addEventListener("visibilitychange", () => (document.hidden ? this.pause() : this.connect()));
    this.connect();
  }

  pause() {
    this.close();
    clearTimeout(this.retry);
    this.retry = null;
  }

  async connect() {
    if (document.hidden || this.source) return;
    try {
      if ((await this.ask()) && !document.hidden) this.listen();
    } catch {
      this.lose();
    }
  }

  /** Asks whose run it is and what may be done; false where the page is loaded anew for it. */
  async ask() {
    const answer = await fetch("/api/run", { headers: { Accept: "application/json" } });
    if (answer.status === 401 || answer.status === 403) {
      // The secret is another one now: the server's form asks for it.
      location.reload();
      return false;
    }
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    this.describe(await answer.json());
    return true;
  }

  describe(run) {
    // A coordinator that has yet to read its log, or to begin, has no name for its run.
    this.isNamed = Boolean(run.run);
    if (!this.isNamed && this.run?.run) return;
    const isOther = Boolean(this.run?.run) && this.run.run !== run.run;
    this.run = run;
    this.heard.run(run, isOther);
    if (!isOther) return;
    this.next = 0;
    if (this.source) this.listen();
  }

  listen() {
    this.close();
    const source = new EventSource(`/api/changes?from=${this.next}`);
    this.source = source;
    source.addEventListener("open", () => {
      this.wait = FIRST_WAIT_MS;
      this.lostSince = null;
      this.heard.found();
    });
    source.addEventListener("message", (event) => {
      this.next = Number(event.lastEventId);
      this.heard.changes(JSON.parse(event.data));
    });
    source.addEventListener("now", (event) => this.take(JSON.parse(event.data)));
    source.addEventListener("other-run", () => {
      this.close();
      this.connect();
    });
    source.addEventListener("error", () => this.lose());
  }

  /** What may be done changes with the coordinator, and a run that begins has a description then. */
  take(news) {
    this.heard.now(news);
    const isKnown = this.coordinator === null || news.coordinator === this.coordinator;
    this.coordinator = news.coordinator;
    if (!isKnown || !this.isNamed) this.ask().catch(() => this.lose());
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  lose() {
    this.close();
    this.lostSince ??= performance.now();
    this.heard.lost(this.lostSince);
    // Whatever else fails meanwhile, it is tried again once.
    if (this.retry) return;
    this.retry = setTimeout(() => {
      this.retry = null;
      this.connect();
    }, this.wait);
    this.wait = Math.min(LONGEST_WAIT_MS, this.wait * 2);
  }
}
