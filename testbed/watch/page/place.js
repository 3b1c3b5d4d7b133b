// The place where a reader is, kept in the address: the window of time, the playhead, the selection
// and the filters. A reload, and whoever is sent the address, finds the same.

const DEFAULTS = { rows: "all", density: "auto", kind: "", about: "", ended: false };

/** The place that the address says. */
export function readPlace() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = (text) => (text !== null && Number.isFinite(Number(text)) ? Number(text) : null);
  const [mode, a, b] = (words.get("window") ?? "all").split(",");
  return {
    window: { mode: ["follow", "free"].includes(mode) ? mode : "all", from: number(a ?? null), span: number(b ?? null) },
    head: number(words.get("at")),
    hasPlace: location.hash.length > 1,
    selected: words.get("selected") ?? "",
    choice: {
      rows: ["all", "window", "now"].includes(words.get("rows")) ? words.get("rows") : DEFAULTS.rows,
      density: ["auto", "low", "medium", "high"].includes(words.get("density")) ? words.get("density") : DEFAULTS.density,
      kind: words.get("kind") ?? "",
      about: words.get("about") ?? "",
      ended: words.get("ended") === "yes",
    },
  };
}

/** A place as the words behind the address's #. */
export function placeWords({ view, playhead, selected, choice }) {
  const words = new URLSearchParams();
  // A window that follows begins where the playhead is.
  if (view.mode === "follow") words.set("window", `follow,0,${round(view.span)}`);
  if (view.mode === "free") words.set("window", `free,${round(view.from)},${round(view.span)}`);
  if (!playhead.isLive) words.set("at", round(playhead.time));
  if (selected) words.set("selected", selected);
  for (const [name, value] of Object.entries(choice)) {
    if (value !== DEFAULTS[name]) words.set(name, value === true ? "yes" : value);
  }
  return words.toString();
}

function round(seconds) {
  return String(Number(seconds.toFixed(3)));
}

/** Keeps the place, at most twice a second: browsers refuse to be told more often. */
export class PlaceKeeper {
  constructor() {
    this.kept = location.hash.slice(1);
    this.at = 0;
  }

  keep(real, state) {
    if (real - this.at < 500) return;
    this.at = real;
    const words = placeWords(state);
    if (words === this.kept) return;
    this.kept = words;
    history.replaceState(null, "", words ? `#${words}` : location.pathname + location.search);
  }
}
