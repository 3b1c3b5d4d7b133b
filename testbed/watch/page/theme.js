// Colours of the canvases, taken from the style sheet so that light and dark are said in one place.

const NAMES = [
  "bg", "fg", "dim", "line", "soft", "axis", "life", "limit", "in-bar", "link", "warn", "warn-line",
  "frozen-line", "boot-stripe", "frozen-fill", "frozen-stripe", "slow-stripe", "lost-stripe", "measure", "measure-line",
  "mark-fill", "mark-line", "accent", "heat",
];

/** Number of colours of work. */
export const COLOURS = 8;

let theme = null;
const listeners = new Set();

function stripes(size, wide, colour, ground) {
  const tile = document.createElement("canvas");
  tile.width = size;
  tile.height = size;
  const ink = tile.getContext("2d");
  if (ground) {
    ink.fillStyle = ground;
    ink.fillRect(0, 0, size, size);
  }
  ink.strokeStyle = colour;
  ink.lineWidth = wide;
  // Beyond the corners, so that the tiles join.
  for (const shift of [-size, 0, size]) {
    ink.beginPath();
    ink.moveTo(shift - 2, size + 2);
    ink.lineTo(shift + size + 2, -2);
    ink.stroke();
  }
  return { tile, size };
}

function read() {
  const style = getComputedStyle(document.documentElement);
  const colours = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  colours.work = Array.from({ length: COLOURS }, (_, n) => style.getPropertyValue(`--k${n}`).trim());
  colours.font = style.getPropertyValue("--font").trim();
  colours.stripes = {
    boot: stripes(8, 3, colours["boot-stripe"]),
    frozen: stripes(8, 2, colours["frozen-stripe"], colours["frozen-fill"]),
    slow: stripes(6, 2, colours["slow-stripe"]),
    notice: stripes(8, 3, colours.warn),
  };
  return colours;
}

/** The colours as they are now. */
export function colours() {
  theme ??= read();
  return theme;
}

/** Calls `changed` whenever the reader's choice of light or dark changes. */
export function onTheme(changed) {
  listeners.add(changed);
}

/** Has the colours read again, which are others on paper and by night. */
export function forgetTheme() {
  theme = null;
  for (const changed of listeners) changed();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", forgetTheme);

/** Strength of the veil over what lies beyond the playhead. */
const VEIL = 0.72;

/** Makes faint what is drawn to the right of `x`, from `top` down. */
export function dim(ink, theme, x, top, { width, height }) {
  ink.globalAlpha = VEIL;
  ink.fillStyle = theme.bg;
  ink.fillRect(x, top, Math.max(0, width - x), height);
  ink.globalAlpha = 1;
}

/** A pattern that moves with what it fills: `shift` pixels to the right. */
export function pattern(ink, { tile, size }, shift) {
  const made = ink.createPattern(tile, "repeat");
  made.setTransform(new DOMMatrix().translate(((shift % size) + size) % size, 0));
  return made;
}

/** Fits a canvas to its box and the pixels of the screen or of paper; its context, in CSS pixels. */
export function fit(canvas, width, height) {
  const isPrinted = document.documentElement.hasAttribute("data-paper");
  const ratio = isPrinted ? 3 : Math.min(3, window.devicePixelRatio || 1);
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h || canvas.style.width !== `${width}px`) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const ink = canvas.getContext("2d", { alpha: false });
  ink.setTransform(ratio, 0, 0, ratio, 0, 0);
  return ink;
}
