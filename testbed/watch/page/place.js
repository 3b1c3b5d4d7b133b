// The place where a reader is, kept in the address: the window of time, the playhead, the selection
// and the filters. A reload, and whoever is sent the address, finds the same.

import { SCALES } from "./view.js";

const ROWS = ["auto", "all", "host", "window", "now"];
const DENSITIES = ["auto", "low", "medium", "high"];
const DEFAULTS = { rows: "auto", density: "auto", scale: "even", host: "", kind: "", about: "", ended: false };

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
      rows: oneOf(ROWS, words.get("rows")),
      density: oneOf(DENSITIES, words.get("density")),
      scale: oneOf(SCALES, words.get("scale")),
      host: number(words.get("host")) ?? "",
      kind: words.get("kind") ?? "",
      about: words.get("about") ?? "",
      ended: words.get("ended") === "yes",
    },
  };
}

/** The word if it is one of these, or the first of them. */
function oneOf(known, word) {
  return known.includes(word) ? word : known[0];
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
